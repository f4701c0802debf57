import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrefetchWindow } from "../../src/broker/prefetch-window.ts"
import type { Pull } from "../../src/broker/pull.ts"
import type { Plan } from "../../src/domain/fact.ts"
import type { EventWay } from "../../src/routing/event-way.ts"
import { candidates } from "../../src/routing/plan.ts"
import type { RouterOptions, RouterParts } from "../../src/routing/router.ts"
import { Router } from "../../src/routing/router.ts"
import type { RoutingProgress } from "../../src/routing/routing-progress.ts"
import { nothingRouted } from "../../src/routing/routing-progress.ts"
import { clock } from "../../src/time/timers.ts"
import { endpointIds, event, makeMessage, planFor, work } from "./made-routing.ts"

interface World {
  /** Endpoints that want the event. */
  readonly endpoints: ReadonlyArray<string>
  /** What its way says of it. */
  readonly decision: ReturnType<EventWay["decide"]>
  readonly isNew: boolean
  readonly deliveryCount: number
  readonly isCurrent: boolean
  readonly isRoutable: boolean
  readonly areDeliveriesTaken: boolean
  readonly isFirstOfOrigin: boolean
  /** Whether the history took a fact recently, and whether it takes the plan. */
  readonly isHistoryTaking: boolean
  readonly isPlanTaken: boolean
  readonly hasSpaceForLarge: boolean
  /** Whether so many of its tenant wait to be stored that no more are held beside the window. */
  readonly isHeldFull: boolean
  /** Whether others pass a flood. */
  readonly isFloodPassed: boolean
}

const usual: World = {
  ...{ endpoints: ["hook"], isNew: true, deliveryCount: 1, isCurrent: true, isRoutable: true },
  ...{ areDeliveriesTaken: true, isFirstOfOrigin: true, isHistoryTaking: true, isPlanTaken: true },
  ...{ hasSpaceForLarge: true, isHeldFull: false, decision: "route" },
  isFloodPassed: false
}

const known = { ...nothingRouted(event), parts: [{ plan: planFor("hook"), seq: 3 }] }

const progressText = (progress: RoutingProgress) =>
  progress.known !== undefined ? "known" : progress.asked !== undefined ? "asked" : "start"

const makeServices = (world: World, log: Array<string>) => {
  const listed = {
    isDisabled: false,
    generation: "g",
    revision: 1,
    window: 60_000,
    windows: undefined
  }
  const matching = world.endpoints.map((id) => ({ ...listed, id, key: `acme.${id}` }))
  const subject = world.isRoutable
    ? { tenant: "acme", type: "paid" }
    : { tenant: undefined, problem: "it names no type" }
  return {
    ...{ clock, safeRepublishMs: 60_000, reached: () => undefined },
    broker: { largestMessage: () => 8 * 1024 ** 2, names: {} },
    facts: { isTaking: () => world.isHistoryTaking },
    routes: { of: () => ({ subject, all: candidates(matching, []), directory: 1 }) },
    plans: {
      safeRepublishMs: 60_000,
      tryStore: (_: unknown, __: Plan, ___: number, settle: (stored: unknown) => void) => {
        log.push("plan")
        settle(world.isPlanTaken ? { stream: "", seq: 3, duplicate: false } : undefined)
      }
    },
    origins: {
      tryClaim: (_: unknown, __: unknown, settle: (isFirst: boolean) => void) =>
        settle(world.isFirstOfOrigin)
    },
    endpoints: { isOpen: () => world.isCurrent, pass: Effect.void },
    deliveries: { isHealthy: () => world.areDeliveriesTaken }
  }
}

/** Gives an event to a router, so often, and tells which way it goes. */
const take = (changes: Partial<World> = {}, times = 1, deliveries = 10) => {
  const log: Array<string> = []
  const world = { ...usual, ...changes }
  const services = makeServices(world, log)
  const pull = ({ take }: Pull) =>
    Effect.sync(() => {
      for (let count = 0; count < times; count++) {
        const { message } = makeMessage()
        const { deliveryCount } = world
        const nak = (ms: number) => void log.push(`again in ${ms} ms`)
        const ack = () => void log.push("acknowledged")
        take(Object.assign(message, { ack, nak, deliveryCount }), () => undefined)
      }
    })
  const parts = {
    way: {
      consumer: "router",
      decide: () => world.decision,
      leavesQueuesShallow: () => world.isFloodPassed
    },
    services: { ...services, broker: { ...services.broker, pull } },
    prefetch: new PrefetchWindow({ deliveries, bytes: 1_000, usualParts: 1 }),
    inFlight: {
      begin: () => ({
        ...work,
        continueInFiber: (routed: Effect.Effect<void>) => Effect.runSync(routed)
      }),
      run: (routed: Effect.Effect<void>) => Effect.runSync(routed),
      none: Effect.void
    },
    partial: {
      delivered: () => undefined,
      isNew: () => world.isNew,
      givesBack: () => void log.push("unbegun"),
      of: () => Effect.succeed(known)
    },
    recovery: {
      route: (_: unknown, __: unknown, progress: RoutingProgress) =>
        Effect.sync(() => void log.push(`recovery: ${progressText(progress)}`))
    },
    large: {
      hold: (tenant: string) => {
        if (!world.hasSpaceForLarge) return undefined
        const leave = () => void log.push("leave")
        const turn = (deliveries: number) =>
          Effect.sync(() => void log.push(`turn of ${tenant} for ${deliveries}`))
        return { turn, leave }
      },
      close: () => undefined
    },
    held: { isFull: (tenant: string) => tenant === "acme" && world.isHeldFull },
    metrics: {
      returnedEvent: () => void log.push("returned"),
      returnedLargeEvent: () => void log.push("large returned")
    },
    queueBrake: { routed: () => undefined },
    queueDepth: { routed: (deliveries: number) => void log.push(`${deliveries} for queues`) },
    fanOut: () => void log.push("fan-out")
  }
  const router = new Router({} as RouterOptions, parts as unknown as RouterParts)
  Effect.runSync(router.run)
  return log
}

describe("an event that a router takes", () => {
  for (const [what, world, log] of [
    ["leaves its plan to the outcome of its only delivery", {}, ["fan-out"]],
    [
      "has its plan stored first where it goes to several",
      { endpoints: ["a", "b"] },
      ["plan", "fan-out"]
    ],
    ["has its plan stored first where it goes to nobody", { endpoints: [] }, ["plan", "fan-out"]],
    [
      "has its plan stored first where the history took nothing recently",
      { isHistoryTaking: false },
      ["plan", "fan-out"]
    ],
    [
      "goes on in recovery with the plan that was not taken",
      { endpoints: ["a", "b"], isPlanTaken: false },
      ["plan", "recovery: asked"]
    ],
    ["goes on in recovery where it was delivered before", { isNew: false }, ["recovery: known"]],
    [
      "goes on in recovery where endpoints may be out of date",
      { isCurrent: false },
      ["recovery: start"]
    ],
    ["goes on in recovery where it cannot be routed", { isRoutable: false }, ["recovery: start"]],
    [
      "goes on in recovery while no deliveries are taken",
      { areDeliveriesTaken: false },
      ["recovery: start"]
    ],
    [
      "goes on in recovery where it may repeat another",
      { isFirstOfOrigin: false },
      ["recovery: start"]
    ],
    ["has no turns up to 64 endpoints", { endpoints: endpointIds(64) }, ["plan", "fan-out"]],
    [
      "is routed in turns from 65 endpoints on",
      { endpoints: endpointIds(65) },
      ["turn of acme for 65", "recovery: start", "leave"]
    ],
    [
      "is routed in parts of 1,000",
      { endpoints: endpointIds(1_001) },
      ["turn of acme for 1000", "recovery: start", "leave"]
    ],
    [
      "is looked up in its turn where it was delivered before",
      { endpoints: endpointIds(65), isNew: false },
      ["turn of acme for 65", "recovery: known", "leave"]
    ],
    [
      "is left to the broker where too many of its tenant wait for their turn",
      { endpoints: endpointIds(65), hasSpaceForLarge: false },
      ["large returned", "unbegun", "again in 5000 ms"]
    ],
    [
      "is looked up when it comes back where its routing had begun",
      { endpoints: endpointIds(65), hasSpaceForLarge: false, isNew: false },
      ["large returned", "again in 5000 ms"]
    ],
    [
      "comes back after 20 s at most where too many of its tenant wait, however often it came back",
      {
        ...{ endpoints: endpointIds(65), hasSpaceForLarge: false },
        ...{ isNew: false, deliveryCount: 9 }
      },
      ["large returned", "again in 20000 ms"]
    ],
    ["is acknowledged where it is routed elsewhere", { decision: "finished" }, ["acknowledged"]],
    [
      "comes back, still unbegun, until it is decided where it is routed",
      { decision: "undecided" },
      ["unbegun", "again in 1000 ms"]
    ],
    [
      "is looked up when it comes back where its routing had begun before that",
      { decision: "undecided", isNew: false },
      ["again in 1000 ms"]
    ],
    [
      "comes back until it is routed elsewhere, and is not told of as unbegun",
      { decision: "passes" },
      ["again in 1000 ms"]
    ],
    [
      "counts for the depth of the queues while others pass a flood",
      { isFloodPassed: true, endpoints: ["a", "b"] },
      ["1 for queues", "1 for queues", "plan", "fan-out"]
    ],
    [
      "goes on while the window has room, though no more of its tenant are held",
      { isHeldFull: true },
      ["fan-out"]
    ]
  ] satisfies ReadonlyArray<readonly [string, Partial<World>, ReadonlyArray<string>]>)
    it(what, () => assert.deepStrictEqual(take(world), log))

  it("is left to the broker where too many of its tenant wait, and fill half of the window", () => {
    assert.deepStrictEqual(take({ isHeldFull: true }, 1, 2), [
      "returned",
      "unbegun",
      "again in 5000 ms"
    ])
    assert.deepStrictEqual(take({}, 1, 2), ["fan-out"])
    // To look for what was begun of it holds the window as well.
    const begun = { isHeldFull: true, isNew: false }
    assert.deepStrictEqual(take(begun, 1, 2), ["returned", "again in 5000 ms"])
    assert.deepStrictEqual(take(begun), ["recovery: known"])
  })

  it("is not taken a second time while it is in flight", () => {
    assert.deepStrictEqual(take({}, 2), ["fan-out"])
  })
})
