# SPDX-License-Identifier: Apache-2.0
"""The message `p4.tmp.P4DeviceConfig`, which the tutorials send and which no package of PyPI contains.

The file p4/tmp/p4config.proto of the P4Runtime server PI defines it: `reassign` = 1, `extras` = 2, `device_data` = 3.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_File = descriptor_pb2.FileDescriptorProto
_Field = descriptor_pb2.FieldDescriptorProto


def _config() -> type:
    file = _File(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    for name, number, kind in (("reassign", 1, _Field.TYPE_BOOL), ("device_data", 3, _Field.TYPE_BYTES)):
        message.field.add(name=name, number=number, type=kind, label=_Field.LABEL_OPTIONAL)
    pool = descriptor_pool.Default()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


P4DeviceConfig = _config()
