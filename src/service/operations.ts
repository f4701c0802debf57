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
