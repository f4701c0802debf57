import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { keptSince } from "../broker/kept-since.ts"
import { firstSince } from "../broker/scan.ts"
import { maxProviderSkewMs } from "../domain/clock-bounds.ts"
import { decodeType, eventIdHeader, fetchedHeader, idToken, receiversId } from "../domain/intake.ts"
import type { SourceName } from "../domain/source.ts"
import type { Listed, State } from "../providers/listings/listing.ts"

/** Events of one source whose ids are kept in memory at most: 100 bytes each. */
const maxKeptIds = 1_000_000

/**
 * Returns which state of something an event that came in says; undefined for one that says none.
 *
 * @param type the provider's own word.
 */
export type StateOf = (type: string, body: Uint8Array) => State | undefined

/**
 * What is known of an event's arrival. `unreported`: it never came in, and a reconciliation that
 * was killed before it could say so has fetched it.
 */
export type Arrival = "present" | "unreported" | "missing" | "unknown"

const fetchedAt = (header: string): number => (header === "" ? 0 : Date.parse(header))

/**
 * Returns the time since which INTAKE has all that came in, ms since the epoch; 0 if it has all that
 * ever did.
 */
const intakeSince = Effect.gen(function* () {
  const { names, readMessage, streamInfo } = yield* Broker
  const info = yield* streamInfo(`look at ${names.intake}`, names.intake)
  const { first_seq, num_deleted = 0 } = info.state
  // What is in quarantine stays, so the first message says little.
  if (first_seq <= 1 && num_deleted === 0) return 0
  const first = yield* readMessage(`look at ${names.intake}`, names.intake, {
    seq: 1,
    next_by_subj: `${names.subjects.incoming("*", "*", "*")}.>`
  })
  return first === null ? Number.POSITIVE_INFINITY : first.time.getTime()
})

/**
 * Looks events of a source up among what came in: in INTAKE by their ids, and where that does not go
 * back far enough, in EVENTS, whose headers it then reads once from the time that is asked for.
 *
 * @param since the earliest time that is asked about, ms since the epoch.
 * @param reportedUntil what was fetched before, is told already, ms since the epoch.
 * @param stateOf reads which state of something an event that came in has, where the list has states
 *   in place of events.
 */
export const makeArrivals = Effect.fnUntraced(function* (
  source: SourceName,
  since: number,
  reportedUntil: number,
  stateOf?: StateOf
) {
  const broker = yield* Broker
  const { names, readMessage, streamInfo } = broker
  const { id: sourceId, tenant } = source
  const presentOf = (fetched: number): Arrival =>
    fetched > reportedUntil ? "unreported" : "present"
  const intakeFrom = yield* intakeSince
  const events = yield* streamInfo(`look at ${names.events}`, names.events)
  const eventsFrom = keptSince(events)

  const readIds = Effect.gen(function* () {
    const ids = new Set<string>()
    // An event may carry a time of the provider's clock that is ahead.
    const from = yield* firstSince(names.events, since - maxProviderSkewMs)
    let isWhole = true
    yield* readThrough(
      {
        stream: names.events,
        subjects: [names.subjects.event(tenant, `${sourceId}.>`)],
        from,
        to: events.state.last_seq,
        headersOnly: true
      },
      ({ message }) => {
        const id = message.headers?.get(eventIdHeader)
        if (id === undefined || id === "") return
        if (ids.size < maxKeptIds) ids.add(id)
        else isWhole = false
      }
    )
    return { ids, isWhole }
  })
  const inEvents = yield* Effect.cached(readIds)

  /** The latest state of each thing that an event had, and when it was fetched; read once. */
  const readStates = Effect.gen(function* () {
    const latest = new Map<string, { readonly at: number; readonly fetched: number }>()
    const isInIntake = since - maxProviderSkewMs >= intakeFrom
    const stream = isInIntake ? names.intake : names.events
    const subjects = [
      isInIntake
        ? `${names.subjects.incoming(tenant, sourceId, "*")}.>`
        : names.subjects.event(tenant, `${sourceId}.>`)
    ]
    const { state } = yield* streamInfo(`look at ${stream}`, stream)
    const from = yield* firstSince(stream, since - maxProviderSkewMs)
    let isWhole = isInIntake || since - maxProviderSkewMs >= eventsFrom
    yield* readThrough({ stream, subjects, from, to: state.last_seq }, ({ message }) => {
      const [type = ""] = message.subject.split(".").slice(isInIntake ? typeInIntake : typeInEvents)
      const found = stateOf?.(decodeType(type), message.data)
      if (found === undefined) return
      if (latest.size >= maxKeptIds && !latest.has(found.of)) isWhole = false
      else if (found.at > (latest.get(found.of)?.at ?? 0)) {
        const fetched = fetchedAt(message.headers?.get(fetchedHeader) ?? "")
        latest.set(found.of, { at: found.at, fetched })
      }
    })
    return { latest, isWhole }
  })
  const states = yield* Effect.cached(readStates)
  const typeInIntake = names.subjects.incoming(tenant, sourceId, "x").split(".").length
  const typeInEvents = names.subjects.event(tenant, sourceId).split(".").length

  const lookUpState = Effect.fnUntraced(function* ({ at, of }: State) {
    const { isWhole, latest } = yield* states
    const known = (arrival: Arrival) => arrival
    const there = latest.get(of)
    if (there !== undefined && there.at >= at) return known(presentOf(there.fetched))
    return known(isWhole ? "missing" : "unknown")
  })

  const inIntake = Effect.fnUntraced(function* (id: string) {
    const last_by_subj = `${names.subjects.incoming(tenant, sourceId, idToken(id))}.>`
    const there = yield* readMessage(`look at ${names.intake}`, names.intake, { last_by_subj })
    return there === null ? undefined : presentOf(fetchedAt(there.header.get(fetchedHeader)))
  })

  const lookUp = Effect.fnUntraced(function* ({ at, id, state }: Listed) {
    if (state !== undefined) return yield* lookUpState(state)
    const known = (arrival: Arrival) => arrival
    const there = yield* inIntake(id)
    if (there !== undefined) return there
    const cameInAfter = (at ?? since) - maxProviderSkewMs
    if (cameInAfter >= intakeFrom) return known("missing")
    const { ids, isWhole } = yield* inEvents
    if (ids.has(receiversId({ tenant, source: sourceId, id }))) return known("present")
    return known(isWhole && cameInAfter >= eventsFrom ? "missing" : "unknown")
  })
  return { lookUp }
})
