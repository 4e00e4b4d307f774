// SPDX-License-Identifier: Apache-2.0
//! Macros that declare error codes and functions: a trait for the server, its dispatch, and the client's methods.

/// Declares the error codes of an exception.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($code:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are BMv2's")]
        pub enum $name { $($code = $number,)* }

        impl $crate::service::Code for $name {
            fn number(self) -> i32 {
                self as i32
            }

            fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$code),)*
                    _ => None,
                }
            }
        }
    )*};
}

/// Declares functions of a service: each argument with its number.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident in $service:literal {
        $($(#[$fn_doc:meta])* $function:ident($($id:literal $arg:ident: $type:ty),*) -> $returned:ty, $code:ty;)*
    }) => {
        $(#[$doc])*
        pub trait $name {
            $($(#[$fn_doc])*
            ///
            /// # Errors
            /// The code of the function's exception.
            fn $function(&self, $($arg: $type),*) -> Result<$returned, $code>;)*

            /// Reads the arguments of the named function, calls it and writes the reply. Returns false, without reading,
            /// if this is not one of these functions.
            ///
            /// # Errors
            /// If the connection fails, or the arguments are malformed.
            fn serve(
                &self,
                name: &str,
                sequence: i32,
                input: &mut dyn thrift::protocol::TInputProtocol,
                output: &mut dyn thrift::protocol::TOutputProtocol,
            ) -> thrift::Result<bool> {
                match name {
                    $(stringify!($function) => {
                        $(let mut $arg = <$type>::default();)*
                        $crate::wire::read_record(input, &mut |_id, _kind, _input| Ok(match _id {
                            $($id if _kind == <$type as $crate::wire::Field>::TYPE => {
                                $arg = $crate::wire::Field::read_field(_input)?;
                                true
                            })*
                            _ => false,
                        }))?;
                        input.read_message_end()?;
                        let result = self.$function($($arg),*);
                        $crate::service::reply(name, sequence, &result, output)?;
                    })*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl dyn $name {
            /// The functions.
            pub const FUNCTIONS: &'static [$crate::function::Function] = &[
                $($crate::function::Function {
                    name: concat!($service, ":", stringify!($function)),
                    arguments: &[$($crate::function::Argument {
                        id: $id,
                        name: stringify!($arg),
                        kind: stringify!($type),
                    }),*],
                },)*
            ];
        }

        impl $crate::client::Client {
            $($(#[$fn_doc])*
            ///
            /// # Errors
            /// The server's exception, or the connection's failure.
            pub fn $function(&mut self, $($arg: $type),*)
                -> Result<$returned, $crate::client::CallError<$code>>
            {
                self.call(concat!($service, ":", stringify!($function)), |_output| {
                    $($crate::wire::Field::write_field(&$arg, $id, _output)?;)*
                    Ok(())
                })
            })*
        }
    };
}

pub(crate) use {codes, functions};
