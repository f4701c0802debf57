import { headers as makeHeaders } from "@nats-io/transport-node"
import { Effect } from "effect"
import { natsClients } from "../../../../src/broker/clients.ts"

/** When dead letters that a test makes were buried, ms since the epoch. */
export const buriedAt = new Date(2026, 2, 4, 10, 32, 7).getTime()

export interface Buried {
  readonly endpoint: string
  readonly event: string
  readonly eventSeq?: number
  readonly eventAt?: number
  readonly reason: string
  readonly progress?: object
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** Puts a dead letter where a worker would. */
export const bury = ({
  body = "{}",
  endpoint,
  event,
  eventSeq = 7,
  eventAt = buriedAt,
  ...rest
}: Buried) =>
  Effect.gen(function* () {
    const { ask, js, names } = yield* natsClients
    const headers = makeHeaders()
    for (const [name, value] of Object.entries({
      "petrel-event": event,
      "petrel-event-seq": String(eventSeq),
      "petrel-event-at": String(eventAt),
      "petrel-type": "invoice.paid",
      "petrel-round": "0",
      "petrel-began": String(buriedAt),
      "petrel-deadline": String(buriedAt + 60_000),
      "petrel-generation": "g",
      "petrel-revision": "3",
      "petrel-reason": rest.reason,
      "petrel-dead-at": String(buriedAt + 5_000),
      ...(rest.progress === undefined ? {} : { "petrel-progress": JSON.stringify(rest.progress) }),
      ...rest.headers
    }))
      headers.set(name, value)
    yield* ask("bury", () => js.publish(names.subjects.dead("acme", endpoint), body, { headers }))
  })
