import { Cause, Clock, Deferred, Effect, Fiber, Layer, Random } from "effect"
import type { IpNetwork } from "effect/net"
import { Broker } from "../broker/connection.ts"
import { makeGate, sayOnce } from "../broker/gate.ts"
import type { Layout } from "../broker/installed.ts"
import { readLayout } from "../broker/installed.ts"
import { Facts } from "../history/facts.ts"
import { isAllowedAddress } from "../policy/address.ts"
import { agent as makeAgent } from "./connector.ts"
import { Directory } from "./directory.ts"
import type { Ownership } from "./ownership.ts"
import { own } from "./ownership.ts"
import type { Partition } from "./partition.ts"
import { makePartition } from "./partition.ts"
import { runRouter } from "./router.ts"
import { makeSettlement } from "./settlement.ts"
import { sweepUnavailable } from "./sweeper.ts"
import { takeOver, writeFloor } from "./takeover.ts"

/** What a worker does: route events, deliver them, or both. */
export type Role = "router" | "deliver"

export interface WorkerOptions {
  /** Shown in facts, logs and the lease. */
  readonly id: string
  readonly roles: ReadonlyArray<Role>
  /** Networks that requests may go to though they are private, loopback or link-local. */
  readonly allowNetworks: ReadonlyArray<IpNetwork.IpNetwork>
  /** How long a stop waits for requests in flight, ms. (Default: 30 s) */
  readonly stopWithin?: number | undefined
  /** Waiting in a partition by NAK, beyond which schedules are used. (Default: 20,000) */
  readonly maxWaiting?: number | undefined
  /** How long nobody delivers after a worker has died, ms; the same for all workers. (Default: 10 s) */
  readonly leaseTtl?: number | undefined
}

/** A worker that runs. */
export interface Worker {
  /**
   * Stops politely: takes no more, finishes what is in flight, gives back the rest. What is not
   * finished in time is cut off; its messages come back to the next worker.
   */
  readonly stop: Effect.Effect<void>
  /** Waits until the worker has begun to deliver (one that stands by has not). */
  readonly delivering: Effect.Effect<void>
}

const defaultStopWithin = 30_000
/** Pause before a part of a worker that failed begins again, ms. */
const retryPause = 1_000

/** Starts a worker, which runs until it is stopped or the scope closes. */
export const startWorker = Effect.fnUntraced(function* (options: WorkerOptions) {
  const layout = yield* readLayout
  const services = yield* Layer.build(Layer.mergeAll(Directory.layer, Facts.layer))
  const asked = yield* Deferred.make<void>()
  const delivering = yield* Deferred.make<void>()
  const node: Node = {
    options,
    layout,
    stopping: () => Deferred.isDoneUnsafe(asked),
    stopAsked: Deferred.await(asked),
    begun: Deferred.succeed(delivering, undefined)
  }
  const parts = [
    ...(options.roles.includes("router")
      ? [keepUp("route", node, runRouter({ worker: options.id, layout, stopping: node.stopping }))]
      : []),
    ...(options.roles.includes("deliver") ? [keepUp("deliver", node, deliverAsOwner(node))] : [])
  ]
  const fibers = yield* Effect.forEach(parts, (part) =>
    Effect.forkScoped(Effect.provideContext(part, services))
  )
  const within = options.stopWithin ?? defaultStopWithin
  const stop = Effect.gen(function* () {
    yield* Deferred.succeed(asked, undefined)
    yield* Effect.forEach(fibers, Fiber.await, { concurrency: "unbounded" }).pipe(
      Effect.timeoutOrElse({
        duration: within,
        orElse: () =>
          Effect.andThen(
            Effect.logWarning("what was under way was cut off", { after: within }),
            Fiber.interruptAll(fibers)
          )
      })
    )
  })
  yield* Effect.addFinalizer(() => stop)
  return { stop, delivering: Deferred.await(delivering) } satisfies Worker
})

interface Node {
  readonly options: WorkerOptions
  readonly layout: Layout
  readonly stopping: () => boolean
  readonly stopAsked: Effect.Effect<void>
  readonly begun: Effect.Effect<unknown>
}

/** Does its part until the worker stops: again when it ends, and after a pause when it fails. */
const keepUp = <E, R>(what: string, node: Node, part: Effect.Effect<void, E, R>) => {
  const once = Effect.scoped(part).pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.andThen(
          Effect.logError(`cannot ${what}; trying again`, cause),
          Effect.raceFirst(Effect.sleep(retryPause), node.stopAsked)
        )
    )
  )
  return Effect.whileLoop({
    while: () => !node.stopping(),
    body: () => once,
    step: () => undefined
  })
}

/** Becomes owner and delivers while it is. */
const deliverAsOwner = Effect.fnUntraced(function* (node: Node) {
  const ownership = yield* Effect.raceFirst(
    own(node.options.id, node.options.leaseTtl),
    Effect.as(node.stopAsked, undefined)
  )
  if (ownership !== undefined) yield* deliverAll(node, ownership)
})

const deliverAll = Effect.fnUntraced(function* (node: Node, ownership: Ownership) {
  const { layout, options, stopping } = node
  const agent = yield* makeAgent({
    allows: (address) => isAllowedAddress(address, options.allowNetworks)
  })
  const sender = { agent, clock: yield* Clock.Clock }
  const instance = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  let requests = 0
  let lost = false
  yield* Effect.forkScoped(
    Effect.andThen(
      ownership.lost,
      Effect.sync(() => {
        lost = true
      })
    )
  )
  const memories = yield* takeOver(layout.partitions)
  const records = makeGate(
    "the broker takes no retry records: nothing new is sent until it does",
    "the broker takes retry records again"
  )
  const burial = sayOnce(
    "the dead-letter stream takes nothing: deliveries that have ended wait until it does",
    "the dead-letter stream takes dead letters again"
  )
  const asOwner = Effect.suspend(() =>
    ownership.holds()
      ? Effect.void
      : Effect.raceFirst(
          Effect.andThen(ownership.lost, Effect.interrupt),
          Effect.repeat(Effect.sleep("250 millis"), { until: ownership.holds })
        )
  )
  const partitions = yield* Effect.forEach(memories, (memory) =>
    Effect.gen(function* () {
      const settlement = yield* makeSettlement({
        worker: options.id,
        layout,
        memory,
        records,
        burial,
        asOwner,
        nextId: () => `${instance}.${requests++}`,
        maxWaiting: options.maxWaiting
      })
      return yield* makePartition({
        memory,
        settlement,
        sender,
        worker: options.id,
        ackWait: layout.ackWait,
        mayAttempt: ownership.holds,
        stopping: () => stopping() || lost
      })
    })
  )
  yield* Effect.forkScoped(sweepUnavailable(partitions))
  yield* Effect.forkScoped(raiseFloors(partitions, ownership.holds, layout.ackWait))
  yield* node.begun
  yield* Effect.forEach(partitions, ({ deliverAll }) => deliverAll, {
    concurrency: "unbounded",
    discard: true
  })
})

/**
 * Lets what has ended be forgotten, and stores from where a new owner must read the history. Only
 * after whole ack_waits in which the broker was there, and was asked for what it may have missed.
 */
const raiseFloors = Effect.fnUntraced(function* (
  partitions: ReadonlyArray<Partition>,
  holds: () => boolean,
  ackWait: number
) {
  const { onReconnect } = yield* Broker
  const facts = yield* Facts
  const stored = new Map<number, number>()
  let disturbed = false
  const forget = onReconnect(() => {
    disturbed = true
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  return yield* Effect.forever(
    Effect.gen(function* () {
      disturbed = false
      for (const partition of partitions) partition.hasAsked()
      yield* Effect.sleep(ackWait)
      if (disturbed || !facts.isOpen() || !holds()) return
      for (const partition of partitions) {
        const { index, settled } = partition.memory
        if (!partition.hasAsked()) continue
        const floor = settled.rotate()
        if (floor === undefined || stored.get(index) === floor) continue
        yield* Effect.ignore(writeFloor(index, floor))
        stored.set(index, floor)
      }
    })
  )
}, Effect.scoped)
