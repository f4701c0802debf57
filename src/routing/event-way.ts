import { Effect } from "effect"
import type { Broker } from "../broker/broker.ts"
import { remakeRouter } from "../broker/router-position.ts"
import type { Names } from "../domain/names.ts"
import type { IsWantedEvent } from "../history/plans.ts"
import type { Bypass, EventOnWay } from "../policy/bypass.ts"
import { makeBypassConsumer } from "./bypass-store.ts"
import type { BypassWatch } from "./bypass-watch.ts"

/** One of the consumers of the events, and what its routers do with what it gives. */
export interface EventWay {
  /** Name of its router in log lines. */
  readonly name: string
  readonly consumer: string
  /** Makes the consumer again where somebody removed it. */
  readonly remake: Effect.Effect<void, never, Broker>
  /**
   * True while routing waits for deep queues: what goes another way is delivered behind what is in
   * them.
   */
  readonly leavesQueuesShallow: () => boolean
  /** True while it is known which events go this way. */
  readonly isKnown: () => boolean
  /** Whether an event is routed by this way, as far as that is decided. */
  readonly routes: IsWantedEvent
  /**
   * What to do with an event: `finished` is acknowledged, `undecided` and `passes` come again
   * later. What passes is never routed here.
   */
  readonly decide: (event: EventOnWay) => "passes" | "finished" | "route" | "undecided"
}

/**
 * The way of all events that pass by no bypass. An event of the bypass is acknowledged here once it
 * is routed there: up to the position of this consumer all events are routed.
 */
export const mainWay = (names: Names, ackWait: number, watch: BypassWatch): EventWay => ({
  name: "the router",
  consumer: names.routerConsumer,
  remake: remakeRouter(ackWait),
  leavesQueuesShallow: () => watch.bypass() !== undefined,
  isKnown: watch.isKnown,
  routes: ({ tenant, eventAt: at, eventSeq: seq }) => watch.wayOf({ tenant, seq, at }) !== "bypass",
  decide: (event) => {
    if (!watch.isKnown()) return "undecided"
    switch (watch.wayOf(event)) {
      case "main":
        return "route"
      case "undecided":
        return "undecided"
      case "bypass":
        return watch.isRouted(event.seq) ? "finished" : "passes"
    }
  }
})

/** The way of the events that pass by a bypass, which is open. */
export const bypassWay = (bypass: Bypass, ackWait: number, watch: BypassWatch): EventWay => ({
  name: "the router of the bypass",
  consumer: bypass.consumer,
  remake: Effect.ignore(makeBypassConsumer(bypass, bypass.from ?? 0, ackWait)),
  leavesQueuesShallow: () => false,
  isKnown: watch.isKnown,
  routes: ({ tenant, eventAt: at, eventSeq: seq }) => watch.wayOf({ tenant, seq, at }) === "bypass",
  decide: (event) => {
    if (!watch.isKnown() || watch.bypass()?.consumer !== bypass.consumer) return "undecided"
    return watch.wayOf(event) === "bypass" ? "route" : "finished"
  }
})
