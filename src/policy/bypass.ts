/*
 * When the events of other tenants pass a flood.
 *
 * Routers take events in the order of their sequences, so a tenant that publishes faster than they
 * route makes all others wait. Then a second consumer of the events, the bypass, gives the events of
 * the others from a sequence on, and the routers' own consumer passes over those.
 *
 * Each event goes one way only, and everybody who may route it knows which. That needs no agreement
 * at the moment: a router routes nothing unless it has read which bypass there is within the last
 * {@link knownForMs}, and a change takes effect more than that after it was stored.
 */

/** How long a router may rely on what it has read, ms. */
export const knownForMs = 7_000
/**
 * How long an announcement stands before a bypass begins, ms: longer than {@link knownForMs}, so all
 * routers know of it by then. The events of its tenants wait meanwhile.
 */
export const announcedForMs = 8_000
/** How long an announcement stands at most: the events of its tenants wait for what comes of it, ms. */
export const abandonedAfterMs = 60_000
/** How far the clocks of a cluster's nodes may differ, ms: each gives the events it stores their time. */
const clocksDifferMs = 60_000
/** From how long after its end is announced events no longer go by a bypass, ms. */
export const closingForMs = 75_000
/** Events that wait for routers, from which on it is asked whose they are: some seconds of routing. */
export const floodAbove = 5_000
/** Events that wait for routers, below which they have caught up. */
export const caughtUpBelow = 256
/** Share of the waiting events from which on a tenant's are a flood. */
const floodShare = 1 / 8
/** Maximum tenants whose events pass: each is a filter of the consumer. */
const maxPassing = 500

/** A bypass, as it was stored. */
export interface Bypass {
  /** Name of its consumer. */
  readonly consumer: string
  /** Tenants whose events pass by it. */
  readonly tenants: ReadonlySet<string>
  /** Tenants whose events it passes. */
  readonly flooding: ReadonlyArray<string>
  /** The first sequence that passes by it. Undefined while it is only announced. */
  readonly from: number | undefined
  /** Events that are stored from then on do not pass by it any more, ms since the epoch. */
  readonly until: number | undefined
}

/** An event, as far as it decides which way it goes. */
export interface EventOnWay {
  readonly tenant: string | undefined
  readonly seq: number
  /** When the broker stored it, ms since the epoch. */
  readonly at: number
}

/** Which consumer's routers route an event. `undecided`: that is known in some seconds. */
export type Way = "bypass" | "main" | "undecided"

/** Returns which way an event goes. The answer for an event never changes from one way to the other. */
export const wayOf = (bypass: Bypass | undefined, event: EventOnWay): Way => {
  if (bypass === undefined || event.tenant === undefined) return "main"
  const { from, tenants, until = Number.POSITIVE_INFINITY } = bypass
  if (!tenants.has(event.tenant)) return "main"
  if (from === undefined) return "undecided"
  return event.seq >= from && event.at < until ? "bypass" : "main"
}

/** Tenants whose events are a flood, and those whose events are to pass it. */
export interface FloodTenants {
  readonly flooding: ReadonlyArray<string>
  readonly passing: ReadonlyArray<string>
}

/**
 * Returns whose events are a flood, and whose are to pass it; nobody's where there is none.
 *
 * @param sample tenants of some of the events that wait, one for each event.
 * @param known tenants that have endpoints.
 */
export const floodTenants = (
  sample: ReadonlyArray<string>,
  known: Iterable<string>
): FloodTenants => {
  const flooding = [...Map.groupBy(sample, (tenant) => tenant)].flatMap(([tenant, events]) =>
    events.length > sample.length * floodShare ? [tenant] : []
  )
  const passing: Array<string> = []
  if (flooding.length > 0)
    for (const tenant of known)
      if (!flooding.includes(tenant) && passing.length < maxPassing) passing.push(tenant)
  return { flooding, passing }
}

/** What the worker that keeps the bypass sees. */
export interface FloodView {
  readonly bypass: Bypass | undefined
  /** For how long it has seen the bypass as it is, ms. */
  readonly seenForMs: number
  /** Events that no router has had yet. */
  readonly waiting: number
  /** The time of the stream of events, ms since the epoch. */
  readonly brokerMs: number
  /** Up to which sequence the routers' own consumer has finished all events. */
  readonly routedTo: number
  /** The last event's sequence when the bypass was first seen past its end; undefined before. */
  readonly lastThen: number | undefined
}

/** What to do next about a flood. `sample`: ask whose events wait. */
export type FloodStep = "close" | "end" | "none" | "open" | "sample"

/**
 * Decides what to do next. A bypass ends once the routers' own consumer has passed over the last of
 * its events, so that whoever reads no bypass finds none of them left.
 */
export const floodStep = (view: FloodView): FloodStep => {
  const { bypass, lastThen, routedTo, seenForMs, waiting } = view
  if (bypass === undefined) return waiting > floodAbove ? "sample" : "none"
  if (bypass.from === undefined) {
    if (seenForMs >= abandonedAfterMs) return "end"
    return seenForMs >= announcedForMs ? "open" : "none"
  }
  if (bypass.until === undefined)
    return waiting < caughtUpBelow && seenForMs >= announcedForMs ? "close" : "none"
  return lastThen !== undefined && routedTo >= lastThen ? "end" : "none"
}

/** Returns true once no event is stored any more that passes by the bypass. */
export const isPast = ({ bypass, brokerMs }: Pick<FloodView, "brokerMs" | "bypass">): boolean =>
  bypass?.until !== undefined && brokerMs >= bypass.until + clocksDifferMs
