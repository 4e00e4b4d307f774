# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests and responses of the HTTP API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from frontage.changes.plan import Effect
from frontage.config.devices import DeviceState
from frontage.config.vips import Policy, Protocol, ServerState
from frontage.limits import MAX_SID, MAX_WEIGHT

Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]


class Request(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid")


class Vip(BaseModel):
    """A VIP of the configuration."""

    name: str
    address: str
    protocol: Protocol
    port: int
    cookie_prefix: str | None
    policy: Policy
    alpha: float
    look_ahead: int | None
    active: int = Field(description="the number of active servers")
    draining: int = Field(description="the number of servers that are not active")
    syn_defence: dict[str, Any] | None
    limits: dict[str, Any] | None


class VipPatch(Request):
    """A change of a VIP."""

    policy: Policy | None = None
    alpha: float | None = Field(None, ge=0, le=1, description="the weight of N_AF in the score of cclb4")

    @model_validator(mode="after")
    def _not_empty(self) -> VipPatch:
        if self.policy is None and self.alpha is None:
            raise ValueError("set policy, alpha or both")
        return self


class Server(BaseModel):
    """A server of the configuration or from discovery. Discovered servers cannot be changed here."""

    name: str
    vip: str
    address: str
    port: int
    sid: int
    weight: int
    share: int = Field(description="the percentage of its share of new connections, below 100 in slow start")
    zone: str | None
    state: ServerState
    encapsulation: dict[str, Any] | None


class NewServer(Request):
    """A server to add."""

    name: Name
    vip: Name
    address: str = Field(min_length=2, max_length=45, description="the address of the server (DIP)")
    port: int = Field(ge=1, le=65535)
    sid: int | None = Field(None, ge=0, le=MAX_SID, description="the server id; a free one if absent")
    weight: int | None = Field(None, ge=1, le=MAX_WEIGHT)
    zone: Name | None = None


class ServerPatch(Request):
    """A change of a server."""

    state: ServerState | None = None
    weight: int | None = Field(None, ge=1, le=MAX_WEIGHT)

    @model_validator(mode="after")
    def _not_empty(self) -> ServerPatch:
        if self.state is None and self.weight is None:
            raise ValueError("set state, weight or both")
        return self


class Device(BaseModel):
    """A switch of the configuration."""

    name: str
    address: str
    device_id: int
    state: DeviceState
    zone: str | None


class DevicePatch(Request):
    """A change of a switch."""

    state: DeviceState


class Key(BaseModel):
    """A cookie key, without its secret."""

    id: int
    epoch: int
    seals: bool


class HeldKey(Request):
    """The newest key of a server."""

    id: int = Field(ge=0, description="the id of the key", examples=[2])


class KeyHolders(BaseModel):
    """The servers that fetch keys."""

    newest: int = Field(description="the id of the newest key")
    servers: dict[str, int | None] = Field(description="the newest key that each server has acknowledged; null if none")
    late: list[str] = Field(description="the servers that do not have the newest key yet")


class Operation(BaseModel):
    """A change in progress or made."""

    id: str
    verb: str
    arguments: dict[str, Any]
    state: Literal["running", "succeeded", "failed"]
    started: str
    number: int | None = Field(description="the number of the change in the journal; null if nothing had to be changed")
    changed: str | None = Field(description="the result of the change")
    installed: bool = Field(description="whether the switches have the change; false if no controller is running")
    missing: list[str] = Field(description="the switches that do not have the change yet")
    error: str | None


class FieldChange(BaseModel):
    """A field that changes."""

    name: str
    before: str | None
    after: str | None


class Step(BaseModel):
    """An object that is added, changed or removed."""

    action: Literal["add", "change", "remove"]
    kind: str
    name: str
    fields: list[FieldChange]
    effect: Effect = Field(description="the affected connections: none, new ones, some, or those that break")
    why: str


class Update(BaseModel):
    """A P4Runtime update."""

    type: Literal["INSERT", "MODIFY", "DELETE"]
    table: str
    match: list[Any]
    action: str | None
    params: list[int] | None = Field(description="null if they are key material, which no role can read here")
    meter: tuple[int, int] | None = Field(description="the rate and the burst of the entry's meter")


class SwitchPlan(BaseModel):
    """The writes of a plan into one switch."""

    insert: int
    modify: int
    delete: int
    updates: list[Update] | None = Field(description="the updates themselves; null unless the request asks for them")
    digest: str = Field(description="the hash of the updates")


class Plan(BaseModel):
    """The changes that a configuration would make."""

    base: str = Field(description="the entity tag of the configuration on which the plan is based")
    text: str = Field(description="the new configuration")
    steps: list[Step]
    effect: Effect
    without_servers: list[str] = Field(description="the VIPs that would have no active server")
    switches: dict[str, SwitchPlan] = Field(description="by name of the switch, without unreadable switches")


class PlanRequest(Request):
    """A configuration to plan."""

    text: str = Field(max_length=64 * 1024 * 1024)
    source: Name | None = Field(None, description="the name of its file, for the journal")
    entries: bool = Field(False, description="whether the plan lists the P4Runtime updates")


class PlanToApply(Request):
    """A plan to apply. Other fields of the plan are ignored."""

    model_config = ConfigDict(extra="ignore")

    base: str = Field(max_length=64)
    text: str = Field(max_length=64 * 1024 * 1024)
    source: Name | None = None
    switches: dict[str, dict[str, Any]] = {}


class Change(BaseModel):
    """A change in the journal."""

    number: int
    time: str
    author: str
    origin: str
    verb: str
    arguments: dict[str, Any]
    before: str | None
    after: str
    idempotency_key: str | None
    request_id: str | None
    result: str | None
    missing: list[str]


class ChangeWithSteps(Change):
    """A change in the journal, with the objects that it changed."""

    steps: list[Step]


class Routes(BaseModel):
    """The route of one switch to an address."""

    device: str
    route: dict[str, Any] | None
    paths: list[dict[str, Any]]
    down: list[str]


class Installed(BaseModel):
    """The result of an installation."""

    missing: list[str]


class Checked(BaseModel):
    """A valid configuration."""

    vips: int
    servers: int
