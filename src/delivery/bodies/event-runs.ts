import type { DeliveryReference } from "../../domain/backlog-message.ts"

/** Names an event that is to be read, and the size of its body, bytes. */
export type EventReference = Pick<DeliveryReference, "bytes" | "eventAt" | "eventSeq" | "tenant">

/**
 * Events that are read by one request or, where one does not suffice, by requests one after the
 * other. Sequences are inclusive.
 */
export interface EventRun {
  readonly from: number
  readonly to: number
  readonly wanted: ReadonlyArray<EventReference>
}

/**
 * Events this far apart are read together with those between them: up to three events that are not
 * wanted cost less than another request.
 */
const maxStep = 4
/** Maximum messages of one request. */
export const maxRunMessages = 256
/** Maximum bytes of one request with several messages. */
export const maxRunBytes = 1024 * 1024
/** What the broker sends with a body, bytes, roughly. */
const overheadBytes = 512
/** Bounds of the requests that are made at once: the broker drops a connection that takes more. */
const burst = { requests: 64, bytes: 4 * 1024 * 1024 }

/** Divides events into those that are read together, in order of sequence. */
export const runsOf = (wanted: ReadonlyArray<EventReference>): ReadonlyArray<EventRun> => {
  const runs: Array<{ from: number; to: number; wanted: Array<EventReference> }> = []
  for (const one of [...wanted].sort((a, b) => a.eventSeq - b.eventSeq)) {
    const { eventSeq } = one
    const last = runs.at(-1)
    const isNear =
      last !== undefined && eventSeq - last.to <= maxStep && eventSeq - last.from < maxRunMessages
    if (isNear) {
      last.to = eventSeq
      last.wanted.push(one)
    } else runs.push({ from: eventSeq, to: eventSeq, wanted: [one] })
  }
  return runs
}

/** The bytes that a request may bring, roughly. */
const bytesOf = ({ from, to, wanted }: EventRun): number => {
  const bytes = wanted.reduce((sum, one) => sum + one.bytes + overheadBytes, 0)
  return from === to ? bytes : Math.min(maxRunBytes, (bytes * (to - from + 1)) / wanted.length)
}

/** Divides runs into bursts that are read at once, one burst after the other. */
export const burstsOf = (runs: ReadonlyArray<EventRun>): ReadonlyArray<ReadonlyArray<EventRun>> => {
  const bursts: Array<Array<EventRun>> = []
  let bytes = 0
  for (const run of runs) {
    const of = bytesOf(run)
    const last = bursts.at(-1)
    if (last !== undefined && last.length < burst.requests && bytes + of <= burst.bytes) {
      last.push(run)
      bytes += of
    } else {
      bursts.push([run])
      bytes = of
    }
  }
  return bursts
}
