import { Clock, Effect, Result } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { Fact } from "../../domain/fact.ts"
import type { IncomingEvent } from "../../domain/intake.ts"
import { idOfBody } from "../../domain/intake.ts"
import { sourceLabel } from "../../domain/source.ts"
import { nobody } from "../../domain/token.ts"
import { appendFact } from "../../history/facts.ts"
import type { Provider, ProviderEvent, ReceivedRequest } from "../../providers/provider.ts"
import { timers } from "../../time/timers.ts"
import { isPrivate, keptOfRequest } from "../kept-headers.ts"
import type { Note, QuarantineReason } from "../quarantine.ts"
import { quarantine } from "../quarantine.ts"
import { NotStored, storeIncoming } from "../store-incoming.ts"
import type { Admission } from "./admission.ts"
import { type Answer, noStore, notNow, tooLarge, unavailable } from "./answer.ts"
import type { LiveSource } from "./live-sources.ts"
import type { Refusals } from "./refusals.ts"
import type { StoreWatch } from "./store-watch.ts"

/** Events of one request that are stored concurrently. */
const maxConcurrentStores = 16
/** The answer to another method, also where a request that sets a webhook up knows another token. */
const onlyPost =
  "webhooks come by POST; a GET that sets one up must be in its provider's form and carry the source's verify token, if it has one"
/** Characters of an id in a sentence. */
const maxShownId = 200
/** Characters of a content type. */
const maxContentType = 255

const usualType = (contentType: string): string =>
  contentType.length > maxContentType ? "application/octet-stream" : contentType

const noteOf = (
  { source }: LiveSource,
  request: ReceivedRequest,
  reason: QuarantineReason,
  problem: string,
  event?: ProviderEvent
): Note => {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !isPrivate(name)) headers[name] = value
  return {
    ...{ source: source.id, provider: source.provider, reason, problem, headers },
    method: request.method,
    url: request.url,
    contentType:
      event?.contentType ?? request.headers["content-type"] ?? "application/octet-stream",
    ...(event?.id === undefined ? {} : { id: event.id }),
    ...(event === undefined ? {} : { type: event.type })
  }
}

interface TakeOptions {
  readonly admission: Admission
  readonly refusals: Refusals
  readonly store: StoreWatch
  /** The largest event, bytes. */
  readonly maxBytes: number
}

/** How long the history is waited for, ms: a provider waits for its answer. */
const toldWithinMs = 2_000

/** Appends a fact that is news of a failure; a history that takes none is no reason to refuse. */
const tell = Effect.fnUntraced(function* (fact: Omit<Fact, "v" | "at" | "endpoint">, id: string) {
  const at = yield* Clock.currentTimeMillis
  yield* appendFact({ v: 1, at, endpoint: nobody, ...fact }, id).pipe(
    Effect.timeout(toldWithinMs),
    Effect.catch(({ message }) =>
      Effect.logWarning("the history does not take what a gateway tells", { message })
    )
  )
})

/** Tells that a source refuses what comes. */
export const tellRefusing = ({ source }: LiveSource, reason: string) =>
  Effect.andThen(
    Effect.logWarning(`${sourceLabel(source)} refuses what comes: ${reason}`),
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      tell(
        {
          kind: "source-refusing",
          tenant: source.tenant,
          reason,
          incoming: { source: source.id, provider: source.provider }
        },
        `source-refusing.${source.tenant}.${source.id}.${now}`
      )
    )
  )

/** Returns what an error says; a failed `fetch` says why in its cause. */
const causeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

type Part = "stored" | "repeated" | "quarantined"

/**
 * Takes requests of providers: verifies each, stores its events in INTAKE, and says what to answer. A
 * request is answered with 2xx only once the broker has acknowledged all of it, or has it in
 * quarantine.
 */
export const makeTakeRequest = ({ admission, maxBytes, refusals, store }: TakeOptions) => {
  const putAside = Effect.fnUntraced(function* (
    live: LiveSource,
    request: ReceivedRequest,
    body: Uint8Array,
    why: readonly [reason: QuarantineReason, problem: string],
    event?: ProviderEvent
  ) {
    const { source } = live
    const { names } = yield* Broker
    const [reason, problem] = why
    const note = noteOf(live, request, reason, problem, event)
    const { duplicate, seq } = yield* store.within(quarantine(source.tenant, note, body))
    if (duplicate) return
    yield* Effect.logWarning(`${sourceLabel(source)} put ${seq} into quarantine: ${problem}`)
    yield* tell(
      {
        kind: "quarantined",
        tenant: source.tenant,
        reason,
        incoming: { source: source.id, provider: source.provider, seq }
      },
      `quarantined.${names.intake}.${seq}`
    )
  })

  const storeOne = Effect.fnUntraced(function* (
    live: LiveSource,
    request: ReceivedRequest,
    event: ProviderEvent
  ): Effect.fn.Return<Part, unknown, Broker> {
    const { source } = live
    const incoming: IncomingEvent = {
      tenant: source.tenant,
      source: source.id,
      id: event.id === undefined || event.id === "" ? idOfBody(event.body) : event.id,
      type: event.type,
      body: event.body,
      contentType: usualType(event.contentType),
      ...keptOfRequest(request)
    }
    const stored = yield* Effect.result(store.within(storeIncoming(incoming)))
    if (Result.isFailure(stored)) {
      if (stored.failure.reason !== "invalid") return yield* Effect.fail(stored.failure)
      yield* putAside(live, request, event.body, ["invalid", stored.failure.text], event)
      return "quarantined"
    }
    const { as, before } = stored.success
    if (as !== "collided") return as
    if (before !== undefined && live.provider?.isRepeat?.(before, event.body) === true)
      return "repeated"
    const id = incoming.id.slice(0, maxShownId)
    const problem = `an event with the id ${id} came in before, with other bytes`
    yield* putAside(live, request, event.body, ["id-collision", problem], event)
    return "quarantined"
  })

  const taken = Effect.fnUntraced(function* (
    live: LiveSource,
    provider: Provider,
    request: ReceivedRequest
  ) {
    const status = provider.wantsNoContent === true ? 204 : 200
    const reading = provider.read(request)
    if (!reading.ok) {
      yield* putAside(live, request, request.body, ["unreadable", reading.text])
      return { status, outcome: "quarantined" } satisfies Answer
    }
    const parts = yield* Effect.forEach(reading.events, (event) => storeOne(live, request, event), {
      concurrency: maxConcurrentStores
    })
    const outcome = parts.includes("quarantined")
      ? "quarantined"
      : parts.includes("stored") || parts.length === 0
        ? "taken"
        : "repeated"
    return { status, outcome } satisfies Answer
  })

  const noteUnverified = (live: LiveSource, why: Parameters<Refusals["unauthorized"]>[1]) =>
    Effect.suspend(() => {
      const told = refusals.unauthorized(live.source, why)
      return told === undefined ? Effect.void : tellRefusing(live, told)
    })

  /** @param error whose message says more than strangers are told. */
  const notVerifiable = (live: LiveSource, problem: string, text: string, error?: unknown) => {
    const more = error === undefined ? "" : `: ${causeOf(error)}`
    return Effect.as(
      noteUnverified(live, { problem, text: `${text}${more}` }),
      unavailable("not-verifiable", text)
    )
  }

  return Effect.fnUntraced(function* (
    live: LiveSource,
    request: ReceivedRequest
  ): Effect.fn.Return<Answer, never, Broker> {
    const { provider } = live
    if (provider === undefined)
      return yield* notVerifiable(
        live,
        "settings-unknown",
        "the source's settings are not known to this version"
      )
    const now = timers.wallMs()
    const handshake = provider.handshake?.(request, now)
    if (handshake !== undefined) return { ...handshake, outcome: "handshake" }
    if (request.method !== "POST")
      return { status: 405, outcome: "unsupported", headers: { allow: "POST" }, body: onlyPost }
    const verification = yield* Effect.result(
      Effect.tryPromise({
        try: async () => provider.verify(request, now),
        catch: (error) => error
      })
    )
    if (Result.isFailure(verification))
      return yield* notVerifiable(
        live,
        "certificate-unknown",
        "the provider's certificate could not be fetched",
        verification.failure
      )
    const verified = verification.success
    if (!verified.ok) {
      yield* noteUnverified(live, verified)
      return { status: 401, outcome: "unauthorized", body: verified.text }
    }
    refusals.verified(live.source)
    const refused = admission.refusesToStore(live)
    if (refused !== undefined) return notNow(live, refused)
    return yield* store.kept(taken(live, provider, request)).pipe(
      Effect.catch((error) => {
        if (!(error instanceof NotStored) || error.reason !== "too-large")
          return Effect.succeed(noStore)
        const told = refusals.tooLarge(live.source, maxBytes, true)
        return Effect.as(
          told === undefined ? Effect.void : tellRefusing(live, told),
          tooLarge(maxBytes)
        )
      })
    )
  })
}
