//! Expressions: from JSON to [`Node`]s and [`Cond`]s of the narrowest sufficient arithmetic.

use std::collections::HashMap;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::cursor::Cursor;
use super::headers::Names;
use super::range::{Range, Tier};
use crate::error::LoadError;
use crate::expr::{Cond, DynField, HeaderRef, Node, Num, Order, UnionRef, Word};
use crate::phv::{Field, Place};

type Result<T> = std::result::Result<T, LoadError>;

/// Names that an expression may use.
pub(crate) struct Scope<'a> {
    pub(crate) names: &'a Names,
    /// Registers: index and width by name.
    pub(crate) registers: &'a HashMap<String, (u32, u32)>,
    /// Parameters of the enclosing action.
    pub(crate) params: &'a [Param],
}

/// Where an action's parameter is among its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    /// First 64-bit limb.
    pub(crate) first: u32,
    /// Bits.
    pub(crate) width: u32,
}

impl Param {
    pub(crate) fn limbs(self) -> u32 {
        self.width.div_ceil(64).max(1)
    }
}

/// A compiled value and its range. If only the low bits were asked for, only those are right.
pub(crate) struct Value {
    num: Num,
    range: Range,
}

impl Value {
    fn of(tier: Tier, range: Range, build: impl Build) -> Self {
        let num = match tier {
            Tier::B64 => Num::N64(build.node(), range.negative),
            Tier::B128 => Num::N128(build.node(), range.negative),
            Tier::Big => Num::Big(build.node()),
        };
        Self { num, range }
    }

    pub(crate) fn to64(self) -> Node<u64> {
        match self.num {
            Num::N64(n, _) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    pub(crate) fn to128(self) -> Node<u128> {
        match self.num {
            Num::N128(n, _) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    pub(crate) fn to_big(self) -> Node<BigInt> {
        match self.num {
            Num::Big(n) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    fn tier(&self) -> Tier {
        match self.num {
            Num::N64(..) => Tier::B64,
            Num::N128(..) => Tier::B128,
            Num::Big(_) => Tier::Big,
        }
    }
}

/// Builds one node in whichever arithmetic is chosen.
trait Build {
    fn node<W: Kind>(self) -> Node<W>;
}

/// The conversion of values to each kind.
trait Kind: Word {
    fn take(v: Value) -> Node<Self>;
}

impl Kind for u64 {
    fn take(v: Value) -> Node<u64> {
        v.to64()
    }
}

impl Kind for u128 {
    fn take(v: Value) -> Node<u128> {
        v.to128()
    }
}

impl Kind for BigInt {
    fn take(v: Value) -> Node<BigInt> {
        v.to_big()
    }
}

#[derive(Clone, Copy)]
enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
}

struct BinaryOf(Binary, Value, Value);

impl Build for BinaryOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new([W::take(self.1), W::take(self.2)]);
        match self.0 {
            Binary::Add => Node::Add(x),
            Binary::Sub => Node::Sub(x),
            Binary::Mul => Node::Mul(x),
            Binary::Div => Node::Div(x),
            Binary::Mod => Node::Mod(x),
            Binary::And => Node::And(x),
            Binary::Or => Node::Or(x),
            Binary::Xor => Node::Xor(x),
        }
    }
}

struct ShiftOf(bool, bool, Value, Node<u64>);

impl Build for ShiftOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new((W::take(self.2), self.3));
        match (self.0, self.1) {
            (true, _) => Node::Shl(x),
            (false, false) => Node::Shr(x),
            (false, true) => Node::Sar(x),
        }
    }
}

#[derive(Clone, Copy)]
enum Unary {
    Not,
    SignExtend(u32),
    SatUnsigned(u32),
    SatSigned(u32),
}

struct UnaryOf(Unary, Value);

impl Build for UnaryOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new(W::take(self.1));
        match self.0 {
            Unary::Not => Node::Not(x),
            Unary::SignExtend(w) => Node::SignExtend(x, w),
            Unary::SatUnsigned(w) => Node::SatUnsigned(x, w),
            Unary::SatSigned(w) => Node::SatSigned(x, w),
        }
    }
}

struct SelectOf(Cond, Value, Value);

impl Build for SelectOf {
    fn node<W: Kind>(self) -> Node<W> {
        Node::Select(Box::new((self.0, [W::take(self.1), W::take(self.2)])))
    }
}

enum Leaf {
    Field(Field),
    Dyn(DynField),
    Arg(Param),
    Register(u32, Node<u64>),
    Const(BigInt),
    Byte(u32),
    Bool(Cond),
}

impl Build for Leaf {
    fn node<W: Kind>(self) -> Node<W> {
        match self {
            Leaf::Field(Field { place: Place::Word(w), signed: false, .. }) => Node::Word(w),
            Leaf::Field(f) => Node::Field(f),
            Leaf::Dyn(d) => Node::Dyn(Box::new(d)),
            Leaf::Arg(p) => Node::Arg(p.first, p.limbs()),
            Leaf::Register(r, index) => Node::Register(Box::new((r, index))),
            Leaf::Const(v) => {
                let limbs = crate::phv::wrap(&v, 256.max(v.bits() as u32 + 1)).to_u64_digits();
                let value = W::from_limbs(&limbs);
                // The unbounded kind keeps the sign; the fixed kinds have wrapped it already.
                let negative = v.sign() == num_bigint::Sign::Minus;
                let width = 256.max(v.bits() as u32 + 1);
                Node::Const(if negative { value.sign_extend(width) } else { value })
            }
            Leaf::Byte(off) => Node::Byte(off),
            Leaf::Bool(c) => Node::FromBool(Box::new(c)),
        }
    }
}

impl Scope<'_> {
    /// The operand behind any number of `expression` wrappers.
    fn unwrap<'c>(&self, c: &Cursor<'c>) -> Result<(Cursor<'c>, Cursor<'c>, &'c str)> {
        let mut c = c.clone();
        loop {
            let kind = c.get("type").str()?;
            let value = c.get("value");
            if kind != "expression" {
                return Ok((c, value, kind));
            }
            if !value.get("op").is_null() {
                return Ok((c, value.clone(), kind));
            }
            c = value;
        }
    }

    pub(crate) fn field(&self, c: &Cursor) -> Result<Field> {
        let [header, field] = c.tuple()?;
        let h = self.header_id(&header)?;
        let layout = &self.names.layout;
        let name = field.str()?;
        layout.headers[h as usize]
            .field(name)
            .ok_or_else(|| field.error(format!("header {} has no field {name}", header.str().unwrap_or(""))))
    }

    pub(crate) fn header_id(&self, c: &Cursor) -> Result<u32> {
        find(&self.names.headers, c, "header")
    }

    fn stack_field(&self, c: &Cursor) -> Result<(DynField, Field)> {
        let [stack, field] = c.tuple()?;
        let s = find(&self.names.stacks, &stack, "header stack")?;
        self.dyn_field(HeaderRef::Last(s), &field)
    }

    /// A field, by name or number, of a computed header: what it is in any of the headers.
    fn dyn_field(&self, header: HeaderRef, c: &Cursor) -> Result<(DynField, Field)> {
        let layout = &self.names.layout;
        let sample = &layout.headers[self.sample(&header) as usize];
        let index = match c.json.as_str() {
            Some(name) => sample.names.iter().position(|n| n == name),
            None => Some(c.usize()?),
        };
        let index = index.filter(|&i| i < sample.fields.len());
        let index = index.ok_or_else(|| c.error(format!("header type {} has no such field", sample.type_name)))?;
        Ok((DynField { header, index }, sample.fields[index]))
    }

    /// A header of the type that `header` denotes.
    fn sample(&self, header: &HeaderRef) -> u32 {
        let layout = &self.names.layout;
        match header {
            HeaderRef::Static(h) => *h,
            HeaderRef::Element(e) => layout.stacks[e.0 as usize].elements[0],
            HeaderRef::Last(s) => layout.stacks[*s as usize].elements[0],
            HeaderRef::Member(u, m) => {
                layout.unions[self.sample_union(u) as usize].members[*m as usize]
            }
        }
    }

    fn sample_union(&self, u: &UnionRef) -> u32 {
        match u {
            UnionRef::Static(u) => *u,
            UnionRef::Element(e) => self.names.layout.union_stacks[e.0 as usize].elements[0],
            UnionRef::Last(s) => self.names.layout.union_stacks[*s as usize].elements[0],
        }
    }

    pub(crate) fn header(&self, c: &Cursor) -> Result<HeaderRef> {
        let (c, value, kind) = self.unwrap(c)?;
        match (kind, value.get("op").json.as_str()) {
            ("header", _) => Ok(HeaderRef::Static(self.header_id(&value)?)),
            ("expression", Some("dereference_header_stack")) => {
                let (_, stack, _) = self.unwrap(&value.get("left"))?;
                let s = find(&self.names.stacks, &stack, "header stack")?;
                let index = self.value(&value.get("right"), None)?;
                if let Some(i) = constant(&index)
                    && let Some(&h) = self.names.layout.stacks[s as usize].elements.get(i as usize)
                {
                    return Ok(HeaderRef::Static(h));
                }
                Ok(HeaderRef::Element(Box::new((s, index.to64()))))
            }
            ("expression", Some("access_union_header")) => {
                let u = self.union(&value.get("left"))?;
                let right = value.get("right");
                let sample = self.sample_union(&u) as usize;
                let member = right.u32()?;
                if member as usize >= self.names.layout.unions[sample].members.len() {
                    return Err(right.error("the union has fewer members"));
                }
                Ok(HeaderRef::Member(u, member))
            }
            _ => Err(c.error("expected a header")),
        }
    }

    pub(crate) fn union(&self, c: &Cursor) -> Result<UnionRef> {
        let (c, value, kind) = self.unwrap(c)?;
        match (kind, value.get("op").json.as_str()) {
            ("header_union", _) => {
                Ok(UnionRef::Static(find(&self.names.unions, &value, "header union")?))
            }
            ("expression", Some("dereference_union_stack")) => {
                let (_, stack, _) = self.unwrap(&value.get("left"))?;
                let s = find(&self.names.union_stacks, &stack, "header union stack")?;
                let index = self.value(&value.get("right"), None)?;
                Ok(UnionRef::Element(Box::new((s, index.to64()))))
            }
            _ => Err(c.error("expected a header union")),
        }
    }

    /// A field of the last filled element of a stack of unions.
    pub(crate) fn union_stack_field(&self, c: &Cursor) -> Result<(DynField, Field)> {
        let [stack, member, field] = c.tuple()?;
        let s = find(&self.names.union_stacks, &stack, "header union stack")?;
        let m = self.union_member(s, &member)?;
        self.dyn_field(HeaderRef::Member(UnionRef::Last(s), m), &field)
    }

    pub(crate) fn union_member(&self, stack: u32, member: &Cursor) -> Result<u32> {
        let sample = self.names.layout.union_stacks[stack as usize].elements[0] as usize;
        let name = member.str()?;
        let position = self.names.union_members[sample].iter().position(|n| n == name);
        position.map(|p| p as u32).ok_or_else(|| member.error(format!("the union has no member {name}")))
    }

    /// A field that is assigned to, with its shape.
    pub(crate) fn lvalue(&self, c: &Cursor) -> Result<(std::result::Result<Field, DynField>, Field)> {
        let (c, value, kind) = self.unwrap(c)?;
        match (kind, value.get("op").json.as_str()) {
            ("field", _) => self.field(&value).map(|f| (Ok(f), f)),
            ("stack_field", _) => self.stack_field(&value).map(|(d, f)| (Err(d), f)),
            ("union_stack_field", _) => self.union_stack_field(&value).map(|(d, f)| (Err(d), f)),
            ("expression", Some("access_field")) => {
                let (d, f) = self.access_field(&value)?;
                match d.header {
                    HeaderRef::Static(_) => Ok((Ok(f), f)),
                    _ => Ok((Err(d), f)),
                }
            }
            _ => Err(c.error("expected a field to write to")),
        }
    }

    fn access_field(&self, value: &Cursor) -> Result<(DynField, Field)> {
        let header = self.header(&value.get("left"))?;
        self.dyn_field(header, &value.get("right"))
    }

    /// A value of which only the low 64 bits are used.
    pub(crate) fn low64(&self, c: &Cursor) -> Result<Node<u64>> {
        Ok(self.value(c, Some(64))?.to64())
    }

    /// An index or count: 64 bits, saturated if the value can be larger or negative.
    pub(crate) fn index(&self, c: &Cursor) -> Result<Node<u64>> {
        let v = self.value(c, None)?;
        Ok(saturated(v, 64).to64())
    }

    /// A value; `need` says that only so many low bits will be used.
    pub(crate) fn value(&self, c: &Cursor, need: Option<u32>) -> Result<Value> {
        let (c, value, kind) = self.unwrap(c)?;
        if kind == "expression" {
            return self.operation(&value, need);
        }
        let of_field = |f: Field| {
            let range = match f.place {
                Place::Varbit { max, .. } => Range::unsigned(max * 8),
                _ if f.signed => Range::signed(f.width.max(1) - 1),
                _ => Range::unsigned(f.width),
            };
            (range, Leaf::Field(f))
        };
        let of_dyn = |(d, f): (DynField, Field)| (of_field(f).0, Leaf::Dyn(d));
        let (range, leaf) = match kind {
            "field" => of_field(self.field(&value)?),
            "stack_field" => of_dyn(self.stack_field(&value)?),
            "union_stack_field" => of_dyn(self.union_stack_field(&value)?),
            "hexstr" => {
                let v = value.hex()?;
                (Range::of(&v), Leaf::Const(v))
            }
            "runtime_data" | "local" => {
                let i = value.usize()?;
                let p = self.params.get(i).ok_or_else(|| {
                    value.error(format!("the action has {} parameters", self.params.len()))
                })?;
                (Range::unsigned(p.width), Leaf::Arg(*p))
            }
            "register" => {
                let [array, index] = value.tuple()?;
                let (r, width) = find(self.registers, &array, "register")?;
                (Range::unsigned(width), Leaf::Register(r, self.index(&index)?))
            }
            "bool" => (Range::unsigned(1), Leaf::Bool(Cond::Const(value.bool()?))),
            other => return Err(c.error(format!("a value of type {other} cannot be used here"))),
        };
        // Of an unsigned leaf that is wider than needed, the low bits are enough.
        let tier = match need {
            Some(need) => range.tier().min(Tier::with_bits(need)),
            None => range.tier(),
        };
        Ok(Value::of(tier, range, leaf))
    }

    fn operation(&self, e: &Cursor, need: Option<u32>) -> Result<Value> {
        let op = e.get("op").str()?;
        let (left, right) = (e.get("left"), e.get("right"));
        let binary = |kind, range: fn(Range, Range) -> Range| {
            self.binary(kind, &left, &right, need, range)
        };
        match op {
            "+" => binary(Binary::Add, Range::add),
            "-" => binary(Binary::Sub, Range::sub),
            "*" => binary(Binary::Mul, Range::mul),
            "&" => binary(Binary::And, Range::and),
            "|" => binary(Binary::Or, Range::union),
            "^" => binary(Binary::Xor, Range::union),
            "/" => self.quotient(Binary::Div, &left, &right),
            "%" => self.quotient(Binary::Mod, &left, &right),
            "~" => {
                let x = self.value(&right, need)?;
                let range = Range::signed(x.range.bits);
                Ok(self.modular(range, need, |tier| Value::of(tier, range, UnaryOf(Unary::Not, x))))
            }
            "<<" => self.shift_left(&left, &right, need),
            ">>" => {
                let x = self.value(&left, None)?;
                let by = self.value(&right, None)?;
                let range = x.range.shr(constant(&by).map_or(0, |c| c.min(1 << 20) as u32));
                let (tier, negative) = (x.range.tier(), x.range.negative);
                let by = saturated(by, 64).to64();
                Ok(Value::of(tier, range, ShiftOf(false, negative, x, by)))
            }
            "?" => {
                let cond = self.cond(&e.get("cond"))?;
                let (a, b) = (self.value(&left, need)?, self.value(&right, need)?);
                let range = a.range.union(b.range);
                Ok(self.modular(range, need, |tier| Value::of(tier, range, SelectOf(cond, a, b))))
            }
            "b2d" => {
                let c = self.cond(&right)?;
                Ok(Value::of(Tier::B64, Range::unsigned(1), Leaf::Bool(c)))
            }
            "two_comp_mod" => {
                let width = self.width(&right)?;
                let x = self.value(&left, Some(width))?;
                let range = Range::signed(width - 1);
                let tier = Tier::with_bits(width);
                Ok(Value::of(tier, range, UnaryOf(Unary::SignExtend(width), x)))
            }
            "usat_cast" | "sat_cast" => {
                let width = self.width(&right)?;
                let x = self.value(&left, None)?;
                Ok(if op == "usat_cast" {
                    saturated(x, width)
                } else {
                    let tier = x.range.signed_tier().max(Tier::with_bits(width));
                    let range = Range::signed(width - 1);
                    Value::of(tier, range, UnaryOf(Unary::SatSigned(width), x))
                })
            }
            "access_field" => {
                let (d, f) = self.access_field(e)?;
                let range = if f.signed { Range::signed(f.width - 1) } else { Range::unsigned(f.width) };
                let leaf = match d.header {
                    HeaderRef::Static(_) => Leaf::Field(f),
                    _ => Leaf::Dyn(d),
                };
                Ok(Value::of(range.tier(), range, leaf))
            }
            "last_stack_index" | "size_stack" => {
                let (_, name, _) = self.unwrap(&right)?;
                let next = match self.names.stacks.get(name.str()?) {
                    Some(&s) => self.names.layout.stacks[s as usize].next,
                    None => {
                        let s = find(&self.names.union_stacks, &name, "header stack")?;
                        self.names.layout.union_stacks[s as usize].next
                    }
                };
                let size = Value::of(Tier::B64, Range::unsigned(8), Leaf::Byte(next));
                if op == "size_stack" {
                    return Ok(size);
                }
                let one = Value::of(Tier::B64, Range::unsigned(1), Leaf::Const(1.into()));
                let range = Range::signed(8);
                Ok(Value::of(Tier::B64, range, BinaryOf(Binary::Sub, size, one)))
            }
            _ => {
                // A truth value used as a number.
                let c = self.truth(e)?;
                Ok(Value::of(Tier::B64, Range::unsigned(1), Leaf::Bool(c)))
            }
        }
    }

    fn width(&self, c: &Cursor) -> Result<u32> {
        let v = self.value(c, None)?;
        match constant(&v) {
            Some(w @ 1..=65535) => Ok(w as u32),
            _ => Err(c.error("expected a constant width in bits")),
        }
    }

    /// An operation whose low bits depend only on its operands' low bits.
    fn modular(&self, exact: Range, need: Option<u32>, build: impl FnOnce(Tier) -> Value) -> Value {
        let tier = exact.tier();
        let tier = need.map_or(tier, |n| tier.min(Tier::with_bits(n)));
        build(tier)
    }

    fn binary(
        &self,
        kind: Binary,
        left: &Cursor,
        right: &Cursor,
        need: Option<u32>,
        range: fn(Range, Range) -> Range,
    ) -> Result<Value> {
        let need_of_and = match kind {
            // Masking with a constant needs no more bits than the mask has.
            Binary::And => self.mask_bits(left)?.into_iter().chain(self.mask_bits(right)?).min(),
            _ => None,
        };
        let need = need.into_iter().chain(need_of_and).min();
        let operand = |c: &Cursor| {
            if c.is_null() {
                Ok(Value::of(Tier::B64, Range::unsigned(0), Leaf::Const(BigInt::ZERO)))
            } else {
                self.value(c, need)
            }
        };
        let (a, b) = (operand(left)?, operand(right)?);
        let exact = range(a.range, b.range);
        Ok(self.modular(exact, need, |tier| Value::of(tier, exact, BinaryOf(kind, a, b))))
    }

    /// Bits of a constant that is not negative.
    fn mask_bits(&self, c: &Cursor) -> Result<Option<u32>> {
        if c.is_null() {
            return Ok(None);
        }
        let (_, value, kind) = self.unwrap(c)?;
        if kind != "hexstr" {
            return Ok(None);
        }
        let range = Range::of(&value.hex()?);
        Ok((!range.negative).then_some(range.bits.max(1)))
    }

    fn quotient(&self, kind: Binary, left: &Cursor, right: &Cursor) -> Result<Value> {
        // BMv2 requires operands that are not negative.
        let (a, b) = (self.value(left, None)?, self.value(right, None)?);
        let range = match kind {
            Binary::Div => a.range,
            _ => Range::unsigned(a.range.bits.min(b.range.bits)),
        };
        let tier = a.range.tier().max(b.range.tier());
        Ok(Value::of(tier, range, BinaryOf(kind, a, b)))
    }

    fn shift_left(&self, left: &Cursor, right: &Cursor, need: Option<u32>) -> Result<Value> {
        let x = self.value(left, need)?;
        let by = self.value(right, None)?;
        let range = match constant(&by) {
            Some(by) => x.range.shl(by.min(1 << 20) as u32),
            None => Range::unbounded(),
        };
        let by = saturated(by, 64).to64();
        Ok(self.modular(range, need, |tier| Value::of(tier, range, ShiftOf(true, false, x, by))))
    }

    /// A truth value.
    pub(crate) fn cond(&self, c: &Cursor) -> Result<Cond> {
        let (_, value, kind) = self.unwrap(c)?;
        match kind {
            "bool" => Ok(Cond::Const(value.bool()?)),
            "expression" => self.truth(&value),
            _ => Ok(non_zero(self.value(c, None)?)),
        }
    }

    fn truth(&self, e: &Cursor) -> Result<Cond> {
        let op = e.get("op").str()?;
        let (left, right) = (e.get("left"), e.get("right"));
        let two = || Ok(Box::new([self.cond(&left)?, self.cond(&right)?]));
        match op {
            "and" => two().map(Cond::And),
            "or" => two().map(Cond::Or),
            "not" => Ok(Cond::Not(Box::new(self.cond(&right)?))),
            "d2b" => Ok(non_zero(self.value(&right, None)?)),
            "valid" => match self.header(&right)? {
                HeaderRef::Static(h) => Ok(Cond::Valid(self.names.layout.headers[h as usize].valid)),
                h => Ok(Cond::ValidDyn(Box::new(h))),
            },
            "valid_union" => Ok(Cond::ValidUnion(Box::new(self.union(&right)?))),
            "?" => {
                let c = self.cond(&e.get("cond"))?;
                Ok(Cond::Select(Box::new([c, self.cond(&left)?, self.cond(&right)?])))
            }
            "==" => self.equal(&left, &right),
            "!=" => Ok(Cond::Not(Box::new(self.equal(&left, &right)?))),
            "<" => self.compare(Order::Lt, &left, &right),
            "<=" => self.compare(Order::Le, &left, &right),
            ">" => self.compare(Order::Lt, &right, &left),
            ">=" => self.compare(Order::Le, &right, &left),
            "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" | "~" | "<<" | ">>" | "b2d"
            | "two_comp_mod" | "usat_cast" | "sat_cast" | "access_field" | "last_stack_index"
            | "size_stack" => Ok(non_zero(self.operation(e, None)?)),
            other => Err(e.get("op").error(format!("unknown operation {other}"))),
        }
    }

    fn equal(&self, left: &Cursor, right: &Cursor) -> Result<Cond> {
        if self.is_bool(left)? {
            return Ok(Cond::Same(Box::new([self.cond(left)?, self.cond(right)?])));
        }
        if let (Ok(a), Ok(b)) = (self.header(left), self.header(right)) {
            return Ok(Cond::SameHeader(Box::new([a, b])));
        }
        if let (Ok(a), Ok(b)) = (self.union(left), self.union(right)) {
            return Ok(Cond::SameUnion(Box::new([a, b])));
        }
        self.compare(Order::Eq, left, right)
    }

    /// Whether an operand is a truth value rather than a number.
    fn is_bool(&self, c: &Cursor) -> Result<bool> {
        let (_, value, kind) = self.unwrap(c)?;
        Ok(kind == "bool"
            || matches!(
                value.get("op").json.as_str(),
                Some("and" | "or" | "not" | "d2b" | "valid" | "valid_union" | "==" | "!=" | "<" | "<=" | ">" | ">=")
            ))
    }

    fn compare(&self, order: Order, left: &Cursor, right: &Cursor) -> Result<Cond> {
        let (a, b) = (self.value(left, None)?, self.value(right, None)?);
        let signed = a.range.negative || b.range.negative;
        let tier = if signed {
            a.range.signed_tier().max(b.range.signed_tier())
        } else {
            a.range.tier().max(b.range.tier())
        };
        Ok(match tier {
            Tier::B64 => {
                let x = Box::new([a.to64(), b.to64()]);
                if order == Order::Eq { Cond::Eq64(x) } else { Cond::Cmp64(order, signed, x) }
            }
            Tier::B128 => Cond::Cmp128(order, signed, Box::new([a.to128(), b.to128()])),
            Tier::Big => Cond::CmpBig(order, Box::new([a.to_big(), b.to_big()])),
        })
    }
}

fn non_zero(v: Value) -> Cond {
    Cond::NonZero(Box::new(v.num))
}

/// The value, brought into `0..2^width`.
fn saturated(v: Value, width: u32) -> Value {
    if !v.range.negative && v.range.bits <= width {
        return v;
    }
    let tier = v.range.signed_tier().max(v.tier());
    Value::of(tier, Range::unsigned(width), UnaryOf(Unary::SatUnsigned(width), v))
}

fn constant(v: &Value) -> Option<u64> {
    match &v.num {
        Num::N64(Node::Const(c), false) => Some(*c),
        Num::Big(Node::Const(c)) => c.to_u64(),
        _ => None,
    }
}

pub(crate) fn find<T: Copy>(map: &HashMap<String, T>, c: &Cursor, what: &str) -> Result<T> {
    let name = c.str()?;
    map.get(name).copied().ok_or_else(|| c.error(format!("no {what} named {name}")))
}
