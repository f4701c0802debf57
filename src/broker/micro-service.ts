import type { Endpoint, NamedEndpointStats, ServiceHandler, ServiceMsg } from "@nats-io/services"
import { ServiceErrorCodeHeader, ServiceErrorHeader, Svcm } from "@nats-io/services"
import type { MsgHdrs } from "@nats-io/transport-node"
import { headers as makeHeaders } from "@nats-io/transport-node"
import { Clock, Deferred, Effect, FiberSet, Schedule } from "effect"
import type { GetHeader } from "../domain/header-names.ts"
import type { BrokerError } from "./broker-error.ts"
import { natsClients } from "./clients.ts"

/** A request that an endpoint of a service got. */
export interface ServiceRequest {
  readonly subject: string
  readonly body: Uint8Array
  readonly header: GetHeader
}

/** The answer to it. */
export interface ServiceAnswer {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** What went wrong, with a code of HTTP. (Default: nothing) */
  readonly error?: { readonly code: number; readonly description: string } | undefined
}

/** An endpoint of a service. */
export interface ServiceEndpoint {
  /** Letters, digits, `-` and `_`. */
  readonly name: string
  readonly subject: string
  /** Shown to whoever asks what the service can do. */
  readonly metadata: Readonly<Record<string, string>>
  readonly answer: (request: ServiceRequest) => Effect.Effect<ServiceAnswer>
  /** What its statistics show. (Default: the requests that it answered) */
  readonly figures?: () => ServiceFigures
}

/** Statistics of an endpoint that are not about its requests. */
interface ServiceFigures {
  readonly requests: number
  readonly errors: number
  readonly nanoseconds: number
  /** More of them, as JSON. */
  readonly data: unknown
}

interface MicroService {
  /**
   * Called for each request when it arrives, before its body is looked at. Returns what is called
   * once it is answered, or the answer of a request that is refused. (Default: each is answered)
   */
  readonly admit?: (subject: string) => ServiceAnswer | (() => void)
  readonly name: string
  /** As of semantic versioning. */
  readonly version: string
  readonly description: string
  /** Of this process, shown to whoever asks which there are. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly endpoints: ReadonlyArray<ServiceEndpoint>
  /** Pause before it is offered again after the broker has ended it, ms. (Default: 30 s) */
  readonly againAfterMs?: number
}

/** Each try that a permission is not there for is a line for each subject in the broker's log. */
const defaultAgainAfterMs = 30_000

/** Headers of what JetStream delivers or answers with a stored message. */
const storedHeaders = ["Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"]

/**
 * Makes a function that returns true for a request as a client makes it: on the subject of an
 * endpoint, with a reply subject that is no stream's and no request to the broker. A consumer's
 * deliver subject, or the reply subject of another request, can lead any message to the subscription:
 * what a stream holds, or an answer of the broker. Such a message keeps the subject that it was
 * stored with, has the headers of stored messages, or no reply subject.
 *
 * @param pattern subject of the endpoint, of which one token may be `*`.
 */
const requestCheck = (pattern: string) => {
  const expected = pattern.split(".")
  const isOfPattern = (subject: string): boolean => {
    const tokens = subject.split(".")
    return (
      tokens.length === expected.length &&
      expected.every((token, index) => token === "*" || token === tokens[index])
    )
  }
  return ({ headers, reply = "", subject }: ServiceMsg): boolean =>
    reply !== "" &&
    !reply.startsWith("$") &&
    isOfPattern(subject) &&
    !storedHeaders.some((name) => headers?.has(name) === true)
}

/** How long requests under way may take when a service ends, ms. */
const stopWithinMs = 5_000

/** What `nats micro stats` shows of an endpoint; times in ns. */
interface Counted {
  requests: number
  errors: number
  nanoseconds: number
  lastError: string
}

const nanosecondsPerMs = 1_000_000

/**
 * Offers a service by the protocol of NATS micro services, so that `nats micro` finds it, until the
 * scope closes: requests under way are answered first. Services of one name share their requests.
 * The client ends a service as soon as the broker refuses one of its subjects; it is offered again.
 *
 * The library counts a callback as done once it has returned, and no error that is answered. So
 * requests are counted here, and put in its place when somebody asks.
 */
export const startMicroService = Effect.fnUntraced(function* (service: MicroService) {
  const { ask, connection } = yield* natsClients
  const underWay = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(underWay)<never>()
  const { admit = () => () => {}, description, endpoints, metadata = {}, name, version } = service
  const { againAfterMs = defaultAgainAfterMs } = service
  const counts = new Map<string, Counted>()
  const figures = new Map(endpoints.map((one) => [one.subject, one.figures]))
  const add = Effect.acquireRelease(
    ask("offer the NATS service", () =>
      new Svcm(connection).add({
        ...{ name, version, description, metadata: { ...metadata } },
        statsHandler: (endpoint: Endpoint) => {
          const { data = null, ...own } = figures.get(endpoint.subject)?.() ?? {}
          showCounts(endpoint, counts.get(endpoint.subject), own)
          return Promise.resolve(data)
        }
      })
    ),
    (added) =>
      Effect.promise(async () => added.stop()).pipe(
        Effect.andThen(FiberSet.awaitEmpty(underWay)),
        Effect.timeoutOption(stopWithinMs),
        Effect.ignoreCause
      )
  )
  const handlers = endpoints.map(({ answer, metadata, name: endpoint, subject }) => {
    const counted: Counted = { requests: 0, errors: 0, nanoseconds: 0, lastError: "" }
    counts.set(subject, counted)
    const handler = answering(answer, counted)
    const isRequest = requestCheck(subject)
    const handle: ServiceHandler = (error, message) => {
      // Else the service ends by it, which is told.
      if (error !== null) return
      if (!isRequest(message)) return noteError(counted, notLookedAt)
      const admitted = admit(message.subject)
      // Without a fiber: as fast as the broker passes on what one tenant sends.
      if (typeof admitted === "function")
        run(Effect.ensuring(handler(message), Effect.sync(admitted)))
      else respond(message, admitted, counted)
    }
    return [endpoint, { subject, metadata: { ...metadata }, handler: handle }] as const
  })
  const started = yield* Deferred.make<void, BrokerError>()
  let hasEnded = false
  const offer = Effect.gen(function* () {
    const offered = yield* add
    for (const [endpoint, options] of handlers) offered.addEndpoint(endpoint, options)
    // Where the broker goes meanwhile, the client offers it again once the broker is back.
    yield* Effect.retry(
      ask("offer the NATS service", () => connection.flush()),
      { while: () => !connection.isClosed(), schedule: Schedule.spaced(retryPauseMs) }
    )
    if (hasEnded && !offered.isStopped) {
      hasEnded = false
      yield* Effect.logInfo("the NATS service is offered again", { service: name })
    }
    yield* Deferred.succeed(started, undefined)
    const error = yield* Effect.promise(() => offered.stopped)
    if (!hasEnded) yield* tellEnd(name, error)
    hasEnded = true
  }).pipe(Effect.scoped)
  const offering = Effect.gen(function* () {
    while (!connection.isClosed()) {
      yield* offer
      yield* Effect.sleep(againAfterMs)
    }
  })
  yield* Effect.forkScoped(Effect.catch(offering, (error) => Deferred.fail(started, error)))
  yield* Deferred.await(started)
})

/** Pause before the broker is asked again whether it knows of a service, ms. */
const retryPauseMs = 250

/** Says why a service has ended before it was to. */
const tellEnd = (service: string, error: Error | null) =>
  Effect.logWarning("the NATS service has ended", {
    service,
    why:
      error === null
        ? "the connection is closed"
        : `${error.message}; it is offered again once the broker permits it`
  })

const notLookedAt = "a message that is not a request was ignored"

const noteError = (counted: Counted, error: string): void => {
  counted.errors++
  counted.lastError = error
}

/** A refusal is one answer for many requests. */
const madeHeaders = new WeakMap<ServiceAnswer, MsgHdrs>()

const headersOf = (answer: ServiceAnswer): MsgHdrs => {
  const made = madeHeaders.get(answer)
  if (made !== undefined) return made
  const { error, headers } = answer
  const sent = makeHeaders()
  for (const [name, value] of Object.entries(headers)) sent.set(name, value)
  if (error !== undefined) {
    sent.set(ServiceErrorCodeHeader, String(error.code))
    sent.set(ServiceErrorHeader, error.description)
  }
  madeHeaders.set(answer, sent)
  return sent
}

const respond = (message: ServiceMsg, answer: ServiceAnswer, counted: Counted): void => {
  const { body, error } = answer
  message.respond(body, { headers: headersOf(answer) })
  counted.requests++
  if (error !== undefined) noteError(counted, `${error.code}: ${error.description}`)
}

const answering = (answer: ServiceEndpoint["answer"], counted: Counted) =>
  Effect.fnUntraced(function* (message: ServiceMsg) {
    const began = yield* Clock.currentTimeMillis
    const answered = yield* answer({
      subject: message.subject,
      body: message.data,
      header: (name) => message.headers?.get(name, "insensitive") || undefined
    })
    respond(message, answered, counted)
    counted.nanoseconds += ((yield* Clock.currentTimeMillis) - began) * nanosecondsPerMs
  })

const showCounts = (
  endpoint: Endpoint,
  counted: Counted | undefined,
  own: Partial<Counted>
): void => {
  const { stats } = endpoint as Endpoint & { readonly stats?: NamedEndpointStats }
  if (counted === undefined || stats === undefined) return
  const { errors, lastError, nanoseconds, requests } = { ...counted, ...own }
  stats.num_requests = requests
  stats.num_errors = errors
  stats.processing_time = nanoseconds
  stats.average_processing_time = requests === 0 ? 0 : Math.round(nanoseconds / requests)
  if (lastError !== "") stats.last_error = lastError
}
