import { Deferred, Effect, Exit, Scope } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import type { Ground } from "../ground.ts"
import { addTyped, typeSubjects, watchPetrel } from "../ground.ts"
import { latencyFigures } from "../open-loop.ts"
import { startPublisher, startReceiver, startWorker } from "../processes.ts"
import type { Counted } from "../programs/receiver.ts"
import { startBroker } from "../rig.ts"
import type { Figure, Scenario } from "../scenario.ts"

/** Five in each of 8 partitions on average. */
const endpoints = 40
const bytes = 1024
/** Number of workers before and after, and between. */
const [few, many] = [2, 4]
const usual = 1_000
/** Share of what the machine does at most that is its load in the second case. */
const share = 0.7
/** Time that the load lasts before anything is counted: the watermarks then lag as far as usual, s. */
const lead = 50
/** Events are published in jobs of this length, s. */
const slice = 5
/** Time that is counted with a steady number of workers before a move, s. */
const steady = 10
/** Time that is counted from the beginning of a move, and at least from its end, s. */
const [moveFor, after] = [20, 5]

const ms = { unit: "ms", digits: 1 }
const figures = {
  before: { title: "p99 before", ...ms, panel: "p99, ms", side: "limit" },
  others: { title: "p99 while as many start elsewhere", ...ms, panel: "p99, ms", side: "limit" },
  out: { title: `p99 from ${few} to ${many}`, ...ms, panel: "p99, ms" },
  outRatio: { title: `p99 from ${few} to ${many}, ratio`, unit: "", digits: 2 },
  outToOthers: {
    title: `p99 from ${few} to ${many}, ratio to that elsewhere`,
    unit: "",
    digits: 2
  },
  outMax: { title: `latest from ${few} to ${many}`, ...ms, panel: "latest, ms" },
  outAfter: { title: "both delivered after", unit: "s", digits: 1 },
  between: { title: `p99 with ${many}`, ...ms, panel: "p99, ms", side: "limit" },
  in: { title: `p99 from ${many} to ${few}`, ...ms, panel: "p99, ms" },
  inRatio: { title: `p99 from ${many} to ${few}, ratio`, unit: "", digits: 2 },
  inMax: { title: `latest from ${many} to ${few}`, ...ms, panel: "latest, ms" },
  inAfter: { title: "both were gone after", unit: "s", digits: 1 },
  repeated: { title: "sent twice", unit: "", digits: 0 },
  p50: { ...latencyFigures.p50, title: "p50 before" }
} as const satisfies Record<string, Figure>

/** Starts so many workers at the same time, in a scope of their own. */
const startWorkers = (nats: string, count: number, scope: Scope.Scope) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.provideService(startWorker(nats), Scope.Scope, scope),
    { concurrency: "unbounded" }
  )

/** Publishes as fast as the broker acknowledges, and returns how many were delivered a second. */
const saturate = (ground: Ground, count: number) =>
  Effect.promise(async () => {
    await ground.receiver.reset()
    const [{ first, last }] = await Promise.all([
      ground.receiver.received(count),
      ground.publisher.publish({ subject: typeSubjects, subjects: endpoints, count, bytes })
    ])
    return (count - 1) / ((last - first) / 1000)
  })

/** An open loop that goes on from phase to phase. */
const makeLoad = ({ publisher, receiver }: Ground, perSecond: number) => {
  let published = 0
  let arrived = 0
  const publish = async (seconds: number) => {
    const count = Math.round(perSecond * seconds)
    published += count
    await publisher.publish({ subject: typeSubjects, subjects: endpoints, count, bytes, perSecond })
  }
  const turn = async (): Promise<Counted> => {
    const counted = await receiver.reset()
    if (published > 0) arrived += counted.requests
    return counted
  }
  /** Publishes for so long, and until `done`, and returns what arrived meanwhile. */
  const phase = (seconds: number, done: Effect.Effect<boolean> = Effect.succeed(true)) =>
    Effect.gen(function* () {
      yield* Effect.promise(turn)
      for (let gone = 0; gone < seconds || !(yield* done); gone += slice)
        yield* Effect.promise(() => publish(slice))
      return (yield* Effect.promise(turn)).latency
    })
  /** Waits for all that was published. Returns how many requests more than events there were. */
  const end = Effect.promise(async () => {
    await receiver.received(published - arrived)
    await turn()
    return arrived - published
  })
  return { phase, end }
}

/** Runs an effect beside a phase, which lasts for some time longer. Returns both, and its time. */
const beside = <A, B>(
  phase: (done: Effect.Effect<boolean>) => Effect.Effect<B>,
  work: Effect.Effect<A>
) =>
  Effect.gen(function* () {
    const done = yield* Deferred.make<void>()
    const begun = performance.now()
    const working = work.pipe(
      Effect.map((value) => ({ value, seconds: (performance.now() - begun) / 1000 })),
      Effect.tap(
        Effect.forkScoped(Effect.delay(Deferred.succeed(done, undefined), `${after} seconds`))
      )
    )
    const [worked, phased] = yield* Effect.all([working, phase(Deferred.isDone(done))], {
      concurrency: "unbounded"
    })
    return { ...worked, phased }
  }).pipe(Effect.scoped)

/**
 * Two workers get a steady load. Two more are started, and stopped again, at the same time. All of
 * them, the broker, the receiver and the publisher share the machine's cores.
 */
export const scaling: Scenario = {
  name: "scaling",
  onlyNamed: true,
  measures: `What ${few} to ${many} workers and back to ${few} under load does to the latency.`,
  limit: "Its measure is the same load with a steady number of workers, just before.",
  sides: { petrel: "moving", limit: "steady" },
  figures,
  run: Effect.fnUntraced(function* ({ quick, rounds = 1 }, row) {
    const receiver = yield* startReceiver()
    const broker = yield* startBroker()
    const elsewhere = yield* startBroker()
    yield* Effect.provide(
      addTyped(endpoints, (number) => `${receiver.url}/${number}`),
      connectTo(broker)
    )
    const workers = yield* startWorkers(broker.url, few, yield* Scope.Scope)
    const publisher = yield* startPublisher(broker.url)
    const ground: Ground = { receiver, broker, publisher, workers, limits: [] }
    const joined = yield* Scope.make()
    const joining = startWorkers(broker.url, many - few, joined)

    // What four workers do on these cores is less than what two do.
    yield* saturate(ground, quick ? 10_000 : 60_000)
    yield* joining
    const most = yield* saturate(ground, quick ? 10_000 : 60_000)
    yield* Scope.close(joined, Exit.void)
    const loads = [
      [`${usual.toLocaleString("en")} events a second`, usual],
      [`${share * 100}% of what ${many} workers do here`, Math.floor(most * share)]
    ] as const

    const [steadyFor, movesFor] = quick ? [slice, slice] : [steady, moveFor]
    for (const [of, perSecond] of loads)
      for (let round = 1; round <= rounds; round++) {
        const load = makeLoad(ground, perSecond)
        yield* load.phase(quick ? slice : lead)
        const watched = watchPetrel(ground)
        const before = yield* load.phase(steadyFor)
        const limit = watched().use
        // What two processes cost that load and compile, and take no partition of these workers.
        const others = yield* beside(
          (done) => load.phase(movesFor, done),
          Effect.scoped(
            Effect.flatMap(Scope.Scope, (own) => startWorkers(elsewhere.url, many - few, own))
          )
        )
        yield* load.phase(slice)
        const scope = yield* Scope.make()
        const moving = watchPetrel(ground)
        const more = yield* beside(
          (done) => load.phase(movesFor, done),
          startWorkers(broker.url, many - few, scope)
        )
        const petrel = moving().use
        const between = yield* load.phase(steadyFor)
        const fewer = yield* beside(
          (done) => load.phase(movesFor, done),
          Scope.close(scope, Exit.void)
        )
        row({
          of,
          round,
          figures: {
            before: before.p99,
            others: others.phased.p99,
            out: more.phased.p99,
            outRatio: more.phased.p99 / before.p99,
            outToOthers: more.phased.p99 / others.phased.p99,
            outMax: more.phased.max,
            outAfter: more.seconds,
            between: between.p99,
            in: fewer.phased.p99,
            inRatio: fewer.phased.p99 / between.p99,
            inMax: fewer.phased.max,
            inAfter: fewer.seconds,
            repeated: yield* load.end,
            p50: before.p50
          },
          machine: { petrel, limit }
        })
      }
    return {
      settings: { "70%, events a second": loads[1][1], bytes, endpoints, rounds },
      notes: [
        `the workers that join are started at the same time, and so are the stops of those that leave`,
        "the 3 times and 3 s are counted from the start of their processes: what these take of the cores to load and compile is in the figures"
      ],
      aims: loads.flatMap(([of]) => [
        { of, figure: "outRatio", atMost: 3 },
        { of, figure: "inRatio", atMost: 3 },
        { of, figure: "outMax", atMost: 3_000 },
        { of, figure: "inMax", atMost: 3_000 },
        { of, figure: "repeated", atMost: 0 }
      ])
    }
  })
}
