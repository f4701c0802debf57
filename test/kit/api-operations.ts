import { Schema } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { listedOperations } from "../../src/api/groups.ts"

/** A JSON Schema, as far as the tests read it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly examples?: ReadonlyArray<unknown>
  readonly minimum?: number
  readonly maximum?: number
}

const Inner = Schema.suspend((): Schema.Codec<JsonSchema> => JsonSchema)
const JsonSchema: Schema.Codec<JsonSchema> = Schema.Struct({
  $ref: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  enum: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  anyOf: Schema.optionalKey(Schema.Array(Inner)),
  oneOf: Schema.optionalKey(Schema.Array(Inner)),
  properties: Schema.optionalKey(Schema.Record(Schema.String, Inner)),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  items: Schema.optionalKey(Inner),
  examples: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite)
})

const Parameter = Schema.Struct({
  name: Schema.String,
  in: Schema.Literals(["path", "query", "header"]),
  description: Schema.optionalKey(Schema.String),
  schema: JsonSchema
})

const Document = Schema.Struct({
  paths: Schema.Record(
    Schema.String,
    Schema.Record(
      Schema.String,
      Schema.Struct({
        parameters: Schema.optionalKey(Schema.Array(Parameter)),
        requestBody: Schema.optionalKey(
          Schema.Struct({
            content: Schema.Record(Schema.String, Schema.Struct({ schema: JsonSchema }))
          })
        )
      })
    )
  ),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, JsonSchema) })
})

/** An operation of the API, with what its document says of its input. */
export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<typeof Parameter.Type>
  /** Of a JSON body; undefined without one. */
  readonly body: JsonSchema | undefined
  /** Also of one that is not JSON. */
  readonly hasBody: boolean
  readonly needsToken: boolean
  /** True for operators alone, also where its path names a tenant. */
  readonly isOperators: boolean
}

const document = Schema.decodeUnknownSync(Document)(apiDocument())

/** Returns a schema without a reference at its top. Choices are in `anyOf`. */
export const resolved = (schema: JsonSchema): JsonSchema => {
  const name = schema.$ref?.split("/").at(-1)
  if (name !== undefined) return resolved(document.components.schemas[name] ?? {})
  const { oneOf, ...rest } = schema
  return oneOf === undefined ? schema : { ...rest, anyOf: oneOf }
}

/** All operations of the API. */
export const operations: ReadonlyArray<Operation> = listedOperations.map(
  ({ id, operation: { method, scope }, path }) => {
    const { parameters = [], requestBody } = document.paths[path]?.[method.toLowerCase()] ?? {}
    return {
      ...{ id, method, path, parameters, needsToken: scope !== undefined },
      isOperators: scope === "operator",
      hasBody: requestBody !== undefined,
      body: requestBody?.content["application/json"]?.schema
    }
  }
)

/** Returns an operation's path with values for its parameters. */
export const pathOf = ({ path }: Operation, values: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "x"))
