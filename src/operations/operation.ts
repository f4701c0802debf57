import { Data, type Effect, Schema, SchemaAST, type Stream } from "effect"
import type { BrokerError } from "../broker/broker-error.ts"
import { documentedAs } from "../domain/documented-check.ts"
import { idempotencyKey } from "./idempotency-key.ts"
import type { FailureOf, Refusal } from "./refusals.ts"
import type { TokenScope } from "./token.ts"

/** The same fields, of which those that may be undefined may only be absent: JSON has no undefined. */
type JsonFields<Fields extends Schema.Struct.Fields> = {
  readonly [Name in keyof Fields]: Fields[Name] extends Schema.optional<infer Inner>
    ? Schema.optionalKey<Inner>
    : Fields[Name]
}

/** What the document says of a schema. */
interface Documentation<Fields extends Schema.Struct.Fields> {
  /** Its name in the document. */
  readonly identifier: string
  readonly description?: string
  /** What each field means, with its unit. */
  readonly fields?: { readonly [Name in keyof Fields]?: string }
  readonly examples?: ReadonlyArray<unknown>
  /** What holds between its fields, as JSON Schema has it. `run` checks it. */
  readonly says?: Readonly<Record<string, unknown>>
}

/** Says that nothing is chosen by leaving everything out. */
export const notEmpty = { minProperties: 1 }

/** Returns the schema of a value that is there; undefined for a field that must be there. */
const requiredPart = (field: Schema.Constraint): Schema.Constraint | undefined => {
  if (!("schema" in field) || !Schema.isSchema(field.schema)) return undefined
  const union = field.schema
  if (!("members" in union) || !Array.isArray(union.members)) return undefined
  const [present, absent] = union.members
  return Schema.isSchema(present) &&
    Schema.isSchema(absent) &&
    SchemaAST.isUndefined(absent.ast) &&
    union.members.length === 2
    ? present
    : undefined
}

/**
 * Returns a struct as the API takes or gives it: named and described, and with fields that may be
 * absent but not null.
 */
export const documented = <Fields extends Schema.Struct.Fields>(
  { fields }: Schema.Struct<Fields>,
  documentation: Documentation<Fields>
): Schema.Struct<JsonFields<Fields>> => {
  const texts: ReadonlyMap<string, unknown> = new Map(Object.entries(documentation.fields ?? {}))
  const described = Object.entries(fields).map(([name, field]) => {
    const present = requiredPart(field)
    const one = present === undefined ? field : Schema.optionalKey(present)
    const description = texts.get(name)
    return [
      name,
      typeof description === "string" ? annotated(one as Schema.Top, { description }) : one
    ] as const
  })
  const { description, examples, identifier, says } = documentation
  const struct = Schema.Struct(Object.fromEntries(described)).annotate({
    identifier,
    ...(description === undefined ? {} : { description }),
    ...(examples === undefined ? {} : { examples: examples as never })
  })
  return (says === undefined
    ? struct
    : struct.check(documentedAs(says)).annotate({ identifier })) as unknown as Schema.Struct<
    JsonFields<Fields>
  >
}

/** The document shows the encoded side of a field that is transformed, such as a duration. */
const annotated = (schema: Schema.Top, annotations: { readonly description: string }) => {
  const annotated = schema.annotateKey(annotations)
  return schema.ast.encoding === undefined
    ? annotated
    : Schema.flip(Schema.flip(annotated).annotateKey(annotations))
}

/** An output, and the headers and status of its answer. */
export class Replied<out A> extends Data.Class<{
  readonly output: A
  readonly status?: number
  /** Path of what was made. */
  readonly location?: string
  /** Of what is told, for the ETag. */
  readonly revision?: number
  /** True for the answer of an earlier request, which this one repeats. */
  readonly isRepeated?: true
}> {}

/** Says that the caller knows what is there: it is at this revision still. */
export class Unchanged extends Data.Class<{ readonly revision: number }> {}

/** The output of an operation that may answer so. */
export const unchanged = Schema.Void.annotateKey({ httpApiStatus: 304 })

/** An output of bytes, of a type of their own. */
export class Bytes extends Data.Class<{
  readonly body: Uint8Array
  readonly contentType: string
}> {}

/** An output that goes on until the caller leaves. */
export class Following<out R> extends Data.Class<{
  readonly failures: Stream.Stream<LiveMessage, BrokerError, R>
}> {}

type Fields = Schema.Struct.Fields
/** A schema, or several of which one holds. */
type Schemas = Schema.Top | ReadonlyArray<Schema.Top>
type TypeOf<S extends Schemas> =
  S extends ReadonlyArray<Schema.Top> ? S[number]["Type"] : S extends Schema.Top ? S["Type"] : never

/** What is the same for an operation, whatever its schemas are. */
interface Described {
  /** The scope that a token needs; undefined: no token is needed. */
  readonly scope: TokenScope | undefined
  /** True if its answers name a revision. */
  readonly hasRevision?: boolean
  /** What its output is written as, any type as each output says. (Default: JSON) */
  readonly media?: "*/*" | "text/event-stream"
  /** True if it reads the body of the request itself: it need not be JSON. */
  readonly isRaw?: boolean
  /** What to do over NATS, where it is not offered there. */
  readonly insteadOverNats?: string
  /** One line. */
  readonly summary: string
  readonly description?: string
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
type Path = `/${string}`

/** What an operation is given: what was decoded by its schemas. */
interface Input<Params extends Fields, Query extends Fields, Headers extends Fields, Payload> {
  readonly params: Schema.Struct.Type<Params>
  readonly query: Schema.Struct.Type<Query>
  readonly headers: Schema.Struct.Type<Headers>
  readonly payload: Payload
}

/** An operation: what it is, and how it is carried out with the services `R`. */
export interface Operation<out R> extends Described {
  readonly name: string
  readonly method: Method
  readonly path: Path
  readonly refusals: ReadonlyArray<Refusal>
  readonly params: Fields | undefined
  readonly query: Fields | undefined
  readonly headers: Fields | undefined
  readonly payload: Schemas | undefined
  readonly output: Schemas
  /** Where repeating it is safe with an Idempotency-Key: what of its output is kept for that. */
  readonly once: ((output: never) => unknown) | undefined
  /** Returns the one endpoint that it is about; undefined where it is about more than one. */
  readonly within: ((input: never) => string | undefined) | undefined
  /** The same of what it shows, where its input does not tell. */
  readonly showsWithin: ((output: never) => string | undefined) | undefined
  readonly run: (input: never) => Effect.Effect<unknown, unknown, R>
}

/** A failure that is the answer already (src/api/problems.ts). */
interface Problem {
  readonly type: `urn:petrel:problem:${string}`
}

/**
 * Makes an operation. The schemas say what `run` is given and what it has to return; the refusals
 * that it names, which failures it may have.
 *
 * @param name within its group.
 * @param method as of an HTTP request.
 * @param path with `:name` for what varies.
 */
export const operation = <
  Output extends Schemas,
  R,
  Named extends Refusal = never,
  Params extends Fields = Record<never, never>,
  Query extends Fields = Record<never, never>,
  Headers extends Fields = Record<never, never>,
  Payload extends Schemas = never
>(
  name: string,
  method: Method,
  path: Path,
  described: Described & {
    /** Its refusals, in addition to the failures that any operation may have. */
    readonly refusals?: ReadonlyArray<Named>
    readonly params?: Params
    readonly query?: Query
    readonly headers?: Headers
    readonly payload?: Payload
    readonly output: Output
    /**
     * Given where a request with an Idempotency-Key is carried out once: what of its output is kept
     * for repetitions. It is kept in the clear for a day.
     */
    readonly once?: (output: TypeOf<Output>) => unknown
    /**
     * Returns the one endpoint that it is about; undefined where it is about more. Whom one endpoint
     * only is shown may ask for it if it is that one, and without this or the next function may not.
     */
    readonly within?: (input: Input<Params, Query, Headers, TypeOf<Payload>>) => string | undefined
    /** The same of what it shows, where its input does not tell and it changes nothing. */
    readonly showsWithin?: (output: TypeOf<Output>) => string | undefined
    readonly run: (
      input: Input<Params, Query, Headers, TypeOf<Payload>>
    ) => Effect.Effect<
      TypeOf<Output> | Replied<TypeOf<Output>> | Unchanged | Bytes | Following<R>,
      FailureOf<Named> | Problem,
      R
    >
  }
): Operation<R> => ({
  ...described,
  ...{ name, method, path },
  refusals: [
    ...new Set([
      ...(described.refusals ?? []),
      ...(described.once === undefined ? [] : (["key-reused", "conflict"] as const))
    ])
  ],
  once: described.once,
  within: described.within,
  showsWithin: described.showsWithin,
  params: described.params,
  query: described.query,
  headers:
    described.once === undefined ? described.headers : { ...described.headers, ...idempotencyKey },
  payload: described.payload
})

/** Operations about one kind of thing: `endpoints.get` is `get` of the group `endpoints`. */
export interface OperationGroup<out Each extends Operation<unknown>> {
  readonly name: string
  readonly description: string
  readonly operations: readonly [Each, ...ReadonlyArray<Each>]
}

/** The services that operations need. */
export type ServicesOf<Each> = Each extends Operation<infer R> ? R : never

/** Makes a group. */
export const operationGroup = <
  First extends Operation<unknown>,
  const Others extends ReadonlyArray<Operation<unknown>>
>(
  name: string,
  description: string,
  first: First,
  ...others: Others
): OperationGroup<First | Others[number]> => ({
  name,
  description,
  operations: [first, ...others]
})

/** Returns a schema whose output is answered with a status other than 200. */
export const withStatus = <S extends Schema.Top>(schema: S, status: number): S["Rebuild"] =>
  schema.annotateKey({ httpApiStatus: status })

/** What a follower of failures is told. */
export type LiveMessage =
  /** It knows what there was up to here: a sequence of the history. */
  | { readonly tells: "position"; readonly seq: number }
  | {
      readonly tells: "failure"
      readonly seq: number
      /** The fact, as it is answered. */
      readonly record: Readonly<Record<string, unknown>>
    }
  | {
      readonly tells: "dropped"
      /** How many failures are left out; null if that is not known. */
      readonly dropped: number | null
      readonly why: string
      /** They lie between these sequences of the history, if they are of the time before. */
      readonly after?: number
      readonly until?: number
    }
