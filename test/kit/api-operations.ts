import { apiDocument } from "../../src/api/document.ts"

/** A JSON Schema, as far as the tests read it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly examples?: ReadonlyArray<unknown>
  readonly minimum?: number
  readonly maximum?: number
}

interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required: boolean
  readonly schema: JsonSchema
}

/** An operation of the API, as its document describes it. */
export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  /** Of a JSON body; undefined without one. */
  readonly body: JsonSchema | undefined
  readonly needsToken: boolean
}

interface Document {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly operationId: string
        readonly parameters?: ReadonlyArray<Parameter>
        readonly security?: ReadonlyArray<unknown>
        readonly requestBody?: { readonly content: Record<string, { readonly schema: JsonSchema }> }
      }
    >
  >
  readonly components: { readonly schemas: Record<string, JsonSchema> }
}

const document = apiDocument() as Document

/** Returns a schema without a reference at its top. */
export const resolved = (schema: JsonSchema): JsonSchema => {
  const name = schema.$ref?.split("/").at(-1)
  return name === undefined ? schema : resolved(document.components.schemas[name] ?? {})
}

/** All operations of the API's document. */
export const operations: ReadonlyArray<Operation> = Object.entries(document.paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content["application/json"]?.schema,
      needsToken: (operation.security ?? []).length > 0
    }))
)

/** Returns an operation's path with values for its parameters. */
export const pathOf = ({ path }: Operation, values: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "x"))
