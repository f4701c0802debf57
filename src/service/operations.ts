import { Schema } from "effect"
import { apiDocument } from "../api/document.ts"

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

/** Operations that are not offered, and what is there instead. */
export const notOffered: Readonly<Record<string, string>> = {
  "events.publishRaw": "publish the body to events.<tenant>.<type>",
  "deliveries.live": "subscribe to petrel.failures.<tenant>.>",
  "health.health": "ask with `nats micro ping petrel`"
}

const Operation = Schema.Struct({
  operationId: Schema.String,
  summary: Schema.optionalKey(Schema.String),
  parameters: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ name: Schema.String, in: Schema.Literals(["header", "path", "query"]) })
    )
  ),
  requestBody: Schema.optionalKey(Schema.Unknown)
})
const Paths = Schema.Struct({
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation))
})

/** Returns all operations of the API that the service offers. */
export const serviceOperations = (): ReadonlyArray<ServiceOperation> =>
  Object.entries(Schema.decodeUnknownSync(Paths)(apiDocument()).paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .map(([method, { operationId: id, parameters = [], requestBody, summary = "" }]) => ({
        ...{ id, summary, path, parameters },
        method: method.toUpperCase(),
        hasBody: requestBody !== undefined
      }))
      .filter(({ id }) => !Object.hasOwn(notOffered, id))
  )
