import type { InFlightWork } from "../../src/broker/in-flight.ts"
import { PublishError } from "../../src/broker/publication.ts"
import type { StreamMessage } from "../../src/broker/stream-message.ts"
import type { Event } from "../../src/domain/event.ts"
import type { Plan, Planned } from "../../src/domain/fact.ts"

export const event: Event = {
  ...{ seq: 7, at: 1_700_000_000_000, tenant: "acme", type: "paid", id: "evt", content: {} }
}

export const plannedFor = (id: string): Planned => ({
  ...{ id, generation: "g", revision: 1, deadline: event.at + 60_000 }
})

/** A plan of one part. */
export const planFor = (...ids: ReadonlyArray<string>): Plan => ({
  ...{ part: 0, last: true, endpoints: ids.map(plannedFor), skipped: [], directory: 1 }
})

/** So many endpoints, in the order of a plan. */
export const endpointIds = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `e${String(index).padStart(5, "0")}`)

/** The event as the broker delivered it, and how it was answered. */
export const makeMessage = (bytes = 2) => {
  const answers: Array<"ack" | number> = []
  const message = {
    ...{ subject: "events.acme.paid", seq: event.seq, storedAt: event.at, deliveryCount: 1 },
    data: new Uint8Array(bytes),
    ack: () => void answers.push("ack"),
    nak: (delayMs: number) => void answers.push(delayMs)
  }
  return { answers, message: message as unknown as StreamMessage }
}

/** Work of one event that never goes on in a fiber. */
export const work: InFlightWork<never> = {
  step: (part) => part(),
  done: () => undefined,
  continueInFiber: () => undefined
}

export const storeFailure = (reason: PublishError["reason"]) =>
  new PublishError({ subject: "deliveries", reason, code: 0, detail: "a test says so" })
