import { apiDocument } from "../api/document.ts"
import { listedOperations } from "../api/groups.ts"

/** An operation of the API, as it is asked for over NATS. */
export interface ServiceOperation {
  /** Its `operationId`: `endpoints.get`. */
  readonly id: string
  readonly summary: string
  readonly method: string
  /** With `{name}` for what varies. */
  readonly path: string
  readonly parameters: ReadonlyArray<{
    readonly name: string
    readonly in: "header" | "path" | "query"
  }>
  readonly hasBody: boolean
}

const named = (place: "header" | "path" | "query", fields: object = {}) =>
  Object.keys(fields).map((name) => ({ name, in: place }))

/** All operations of the API that the service offers. */
export const serviceOperations: ReadonlyArray<ServiceOperation> = listedOperations
  .filter(({ operation }) => operation.insteadOverNats === undefined)
  .map(({ id, operation: { headers, method, params, payload, query, summary }, path }) => ({
    ...{ id, method, path, summary },
    parameters: [...named("path", params), ...named("header", headers), ...named("query", query)],
    hasBody: payload !== undefined
  }))

interface Media {
  readonly schema: { readonly $ref?: string }
}

interface Documented {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema: object
  }>
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Media>> }>
  >
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const documented = (): Document => apiDocument() as unknown as Document

const json = "application/json"
const schemaRoot = "#/components/schemas/"

/** What a message of an operation is, and what answers it. */
interface OperationSchemas {
  /**
   * JSON Schema of the message, as a text: the parameters of path and query, and the fields of the
   * body. Named schemas are referred to.
   */
  readonly request: string
  /** The names of the schemas of its answers by status, such as `200 Redelivery, 202 Job`. */
  readonly answers: string
}

const requestOf = ({ parameters = [], requestBody }: Documented): string => {
  // The subject names the tenant, and headers are headers.
  const fields = parameters.filter(({ in: place, name }) => place !== "header" && name !== "tenant")
  const own = {
    type: "object",
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    required: fields.filter(({ required }) => required === true).map(({ name }) => name)
  }
  const body = requestBody?.content[json]?.schema
  if (body === undefined) return JSON.stringify(own)
  return JSON.stringify(fields.length === 0 ? body : { allOf: [own, body] })
}

const lastSuccess = 299

const namesIn = (schema: object): ReadonlyArray<string> =>
  [...JSON.stringify(schema).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name = ""]) => name
  )

const answersOf = ({ responses }: Documented): string =>
  Object.entries(responses)
    .filter(([status]) => Number(status) <= lastSuccess)
    .map(([status, { content = {} }]) => {
      const names = namesIn(content[json]?.schema ?? {})
      return `${status} ${names.join(" or ") || Object.keys(content).join()}`.trim()
    })
    .join(", ")

/** Returns the schemas of all operations, by their ids. */
export const operationSchemas = (): ReadonlyMap<string, OperationSchemas> =>
  new Map(
    Object.values(documented().paths).flatMap((methods) =>
      Object.values(methods).map((one) => [
        one.operationId,
        { request: requestOf(one), answers: answersOf(one) }
      ])
    )
  )

/** Returns a schema of the document with those that it refers to, or undefined if there is none. */
export const schemaNamed = (name: string): object | undefined => {
  const { schemas } = documented().components
  if (!Object.hasOwn(schemas, name)) return undefined
  const found = new Map<string, object>()
  const follow = (one: string) => {
    const schema = schemas[one]
    if (schema === undefined || found.has(one)) return
    found.set(one, schema)
    for (const inner of namesIn(schema)) follow(inner)
  }
  follow(name)
  const text = JSON.stringify({ $ref: `${schemaRoot}${name}`, $defs: Object.fromEntries(found) })
  return JSON.parse(text.replaceAll(`"${schemaRoot}`, '"#/$defs/'))
}
