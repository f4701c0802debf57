import { arrayOf, type Bounds, batchesOf, type Written, withId } from "./batches.ts"
import { type Calling, pauseMs, requestOf, resultOf, send, type WrittenBody } from "./calling.ts"
import { operations } from "./generated/operations.ts"
import type { BatchAnswer, BatchResult, NewEvent, PublishedEvent } from "./generated/schemas.ts"
import { checkMs, newId, nowMs, pause } from "./machine.ts"
import { type CallOptions, checkTimes } from "./operation.ts"
import { PetrelProblem } from "./problem.ts"

/** An event whose body is given as bytes. */
export interface RawEvent {
  readonly tenant?: string | undefined
  readonly type: string
  readonly id?: string | undefined
  /** Receivers get it byte for byte; a text as UTF-8. */
  readonly body: Uint8Array | ArrayBuffer | string
  /** (Default: application/json) */
  readonly contentType?: string | undefined
  readonly traceparent?: string | undefined
  readonly tracestate?: string | undefined
}

/** What became of an event. */
export interface Outcome<E extends NewEvent = NewEvent> {
  /** As it was given, with the id that it was given here if it had none. */
  readonly event: E & { readonly id: string }
  readonly answer: BatchAnswer
}

export interface PublishAllOptions<E extends NewEvent = NewEvent> extends CallOptions {
  readonly tenant?: string | undefined
  /** Requests at the same time. While as many are on their way, the source is not read. (Default: 4) */
  readonly concurrency?: number | undefined
  /** Events of one request, 1 to 1,000. (Default: 500) */
  readonly batch?: number | undefined
  /** How long an event may wait for others to go with, ms. (Default: 20) */
  readonly lingerMs?: number | undefined
  /** Called once for each event, as soon as it is known what became of it. */
  readonly onOutcome?: ((outcome: Outcome<E>) => void) | undefined
}

/** What became of all events. */
export interface Summary<E extends NewEvent = NewEvent> {
  readonly stored: number
  /** They were there already. */
  readonly duplicates: number
  /** They can never be stored as they are. */
  readonly failed: number
  /** The first 100 of them. */
  readonly failures: ReadonlyArray<Outcome<E>>
}

const encoder = new TextEncoder()
const publishId = "events.publish"
const publishing = operations[publishId]
const json = "application/json"

/** What an answer says at least of one event, and of a batch: whoever else answers stores nothing. */
const ofOne = { name: "id", is: (value: unknown) => typeof value === "string" } as const
const ofBatch = { name: "events", is: Array.isArray } as const

const post = async (
  calling: Calling,
  tenant: string | undefined,
  body: WrittenBody,
  options: CallOptions,
  field: typeof ofOne | typeof ofBatch
): Promise<unknown> => {
  const request = requestOf(calling, publishId, publishing, { tenant }, {}, body)
  return resultOf(request, await send(calling, request, options), field)
}

/** Publishes one event; it gets an id if it has none, so that it may be sent again. */
export const publishOne = async (
  calling: Calling,
  event: NewEvent,
  { tenant, ...options }: CallOptions & { readonly tenant?: string | undefined }
): Promise<PublishedEvent> => {
  const bytes = encoder.encode(JSON.stringify(withId(event)))
  const body = { bytes, contentType: json }
  return (await post(calling, tenant, body, options, ofOne)) as PublishedEvent
}

/** Returns the bytes that a body is; anything else would be stored as something else. */
const bytesOf = (body: unknown): Uint8Array => {
  if (typeof body === "string") return encoder.encode(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  throw new TypeError("publishRaw needs body as bytes or text: for data there is publish")
}

/** Publishes bytes as they are. */
export const publishBytes = async (
  calling: Calling,
  { body, contentType = json, id = newId(), tenant, traceparent, tracestate, type }: RawEvent,
  options: CallOptions
): Promise<PublishedEvent> => {
  const rawId = "events.publishRaw"
  const written = { bytes: bytesOf(body), contentType }
  const request = requestOf(calling, rawId, operations[rawId], { tenant, type }, {}, written)
  const traces = Object.entries({ traceparent, tracestate }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const]
  )
  const headers = { ...Object.fromEntries(traces), "idempotency-key": id }
  const answer = await send(calling, { ...request, headers }, options)
  return resultOf(request, answer, ofOne) as PublishedEvent
}

/** What an event of a batch is answered with where it is not known to be stored. */
const notKnown = 503
/** The answer to a body that is too large, of the API or of a proxy in front of it. */
const tooLarge = 413

/** Publishes the halves of a batch that was refused as too large; of one event, tells that. */
const publishHalves = async <E extends NewEvent>(
  [first, ...others]: ReadonlyArray<Written<E>>,
  {
    detail,
    publish,
    tell
  }: {
    readonly detail: string
    readonly publish: (half: ReadonlyArray<Written<E>>) => Promise<void>
    readonly tell: (outcome: Outcome<E>) => void
  }
): Promise<void> => {
  if (first === undefined) return
  if (others.length === 0) return tell({ event: first.event, answer: { status: tooLarge, detail } })
  const half = Math.floor(others.length / 2)
  await publish([first, ...others.slice(0, half)])
  await publish(others.slice(half))
}

const longest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)

/**
 * Publishes a batch, and what of it was not known to be stored again, with the same ids. Divides a
 * batch that is too large for whoever answers.
 *
 * @param bounds of further batches: lowered where this one is too large.
 * @throws PetrelProblem, NoAnswer if some are not known to be stored after all attempts.
 */
const publishBatch = async <E extends NewEvent>(
  calling: Calling,
  events: ReadonlyArray<Written<E>>,
  { tenant, ...options }: CallOptions & { readonly tenant?: string | undefined },
  bounds: Bounds,
  tell: (outcome: Outcome<E>) => void
): Promise<void> => {
  const until = nowMs() + (options.retryForMs ?? calling.retryForMs)
  let left = events
  for (let attempt = 0; left.length > 0; attempt++) {
    const body = { bytes: arrayOf(left), contentType: json }
    const remaining = { ...options, retryForMs: Math.max(0, until - nowMs()) }
    let result: BatchResult
    try {
      result = (await post(calling, tenant, body, remaining, ofBatch)) as BatchResult
    } catch (error) {
      if (!(error instanceof PetrelProblem && error.status === tooLarge)) throw error
      bounds.bytes = Math.min(bounds.bytes, Math.ceil(body.bytes.length / 2))
      const publish = (half: ReadonlyArray<Written<E>>) =>
        publishBatch(calling, half, { ...remaining, tenant }, bounds, tell)
      return publishHalves(left, { detail: error.message, publish, tell })
    }
    const again: Array<Written<E>> = []
    let why = ""
    let retryAfter: number | undefined
    for (const [index, one] of left.entries()) {
      const answer = result.events[index]
      if (answer === undefined || answer.status === notKnown) {
        again.push(one)
        why = answer?.detail ?? "it was not answered for"
        retryAfter = longest(retryAfter, answer?.retryAfter)
      } else tell({ event: one.event, answer })
    }
    left = again
    const wait = pauseMs(attempt, retryAfter)
    if (left.length > 0 && nowMs() + wait > until)
      throw new PetrelProblem(`${publishId}: ${left.length} events were not stored: ${why}`, {
        ...{ code: "unavailable", status: notKnown, operation: publishId },
        ...{ errors: [], retryAfter }
      })
    if (left.length > 0) await pause(wait, options.signal)
  }
}

const usual = { batch: 500, concurrency: 4, lingerMs: 20 }
const maxBatch = 1_000
const maxConcurrency = 64
/** Failures that a summary has. */
const maxFailures = 100

const checkNumber = (name: string, value: number, most: number): void => {
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw new TypeError(`${name} must be a whole number from 1 to ${most}: it is ${value}`)
}

/** Adds up what became of events. */
const summing = <E extends NewEvent>(onOutcome: PublishAllOptions<E>["onOutcome"]) => {
  const failures: Array<Outcome<E>> = []
  const sums = { stored: 0, duplicates: 0, failed: 0 }
  return {
    sums,
    failures,
    tell: (outcome: Outcome<E>) => {
      const { status } = outcome.answer
      if (status === 201) sums.stored++
      else if (status === 200) sums.duplicates++
      else {
        sums.failed++
        if (failures.length < maxFailures) failures.push(outcome)
      }
      onOutcome?.(outcome)
    }
  }
}

/**
 * Publishes all events of a source, in batches. The source is read only as fast as they are stored.
 * Rejects once some are not known to be stored after all attempts, when the requests that are on
 * their way then have ended.
 */
export const publishEvents = async <E extends NewEvent>(
  calling: Calling,
  source: Iterable<E> | AsyncIterable<E>,
  options: PublishAllOptions<E>
): Promise<Summary<E>> => {
  const {
    batch = usual.batch,
    concurrency = usual.concurrency,
    lingerMs = usual.lingerMs,
    onOutcome,
    signal,
    ...rest
  } = options
  checkNumber("batch", batch, maxBatch)
  checkNumber("concurrency", concurrency, maxConcurrency)
  checkMs("lingerMs", lingerMs, 0)
  checkTimes(options)
  const { failures, sums, tell } = summing(onOutcome)
  const inFlight = new Set<Promise<void>>()
  // Ends the reading of the source; requests on their way go on.
  const reading = new AbortController()
  const abort = () => reading.abort(signal?.reason)
  if (signal?.aborted === true) abort()
  signal?.addEventListener("abort", abort)
  const bounds = { events: batch, bytes: calling.transport.maxBodyBytes(), lingerMs }
  const batches = batchesOf(source, bounds, reading.signal)
  const begin = (events: ReadonlyArray<Written<E>>) => {
    const one: Promise<void> = publishBatch(calling, events, { ...rest, signal }, bounds, tell)
      .catch((error: unknown) => reading.abort(error))
      .finally(() => inFlight.delete(one))
    inFlight.add(one)
  }
  try {
    while (!reading.signal.aborted) {
      if (inFlight.size >= concurrency) await Promise.race(inFlight)
      else {
        const step = await batches.next()
        if (step.done === true) break
        begin(step.value)
      }
    }
  } finally {
    signal?.removeEventListener("abort", abort)
    await Promise.all(inFlight)
    await batches.return(undefined)
  }
  if (reading.signal.aborted) throw reading.signal.reason
  return { ...sums, failures }
}
