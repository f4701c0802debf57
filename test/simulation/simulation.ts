/* One run: an installation on the model broker, its workers, operators and receivers, what is done to
   them, and what the oracle says in the end. */
import {
  Cause,
  Clock,
  Effect,
  Exit,
  Random,
  References,
  Schedule,
  Scheduler,
  Schema,
  Scope
} from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { layoutKey, storedFormat } from "../../src/broker/installed.ts"
import { defaultTopology, wanted } from "../../src/broker/topology.ts"
import { Endpoint } from "../../src/domain/endpoint.ts"
import { makeNames } from "../../src/domain/names.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint
} from "../../src/endpoints/endpoint-state.ts"
import { addEndpoint, changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import type { Judgement } from "../../src/history/audit/judgement.ts"
import { planDiscard } from "../../src/operations/dead-letters/discard-dead-letters.ts"
import { planRedelivery } from "../../src/operations/dead-letters/redeliver-dead-letters.ts"
import { resendDelivery } from "../../src/operations/deliveries/resend-delivery.ts"
import { startReplay } from "../../src/operations/replays/replay-events.ts"
import { retryEndpointNow } from "../../src/operations/retries/retry-endpoint.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { clock } from "../../src/time/timers.ts"
import { notYet } from "../../src/worker/readiness.ts"
import { startWorker } from "../../src/worker/worker.ts"
import type { Action, EndpointLimits, Plan, PlannedEndpoint } from "./actions.ts"
import { chanceOf } from "./chance.ts"
import { SimConnection } from "./connection.ts"
import type { Failure } from "./oracle.ts"
import { Oracle } from "./oracle.ts"
import { Receivers } from "./receivers.ts"
import { Repartitioning } from "./repartitioning.ts"
import { ModelServer } from "./server.ts"
import type { ConsumerSettings } from "./server-consumer.ts"
import type { ModelConfig } from "./server-stream.ts"
import { epochMs, SimProcess, World } from "./world.ts"

const tenant = "acme"
const decodeEndpoint = Schema.decodeUnknownSync(Endpoint)
const encodeEndpoint = Schema.encodeSync(Endpoint)
const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
const retry = {
  backoff: { kind: "exponential", base: "1 second", factor: 2, cap: "8 seconds" },
  jitter: "equal",
  maxAttempts: 5,
  window: "15 minutes",
  retryAfterCap: "24 hours",
  timeout: "4 seconds"
}
const opensNever = { failures: 1000, rate: "none" }
const opensSoon = { failures: 3, rate: "none", coolDown: "2 seconds", maxCoolDown: "5 seconds" }

/** Returns limits as an endpoint has them. */
const limited = ({ hasCircuit, maxInFlight, rate, windowMs }: EndpointLimits) => ({
  maxInFlight,
  ...(rate === undefined ? {} : { rate }),
  retry: { ...retry, window: `${windowMs} millis` },
  circuit: hasCircuit ? opensSoon : opensNever
})

/** How long a worker may take to stop, ms. */
const stopWithinMs = 5_000
/** How long a deployment waits until it kills a worker that does not stop, ms. */
const killAfterMs = 15_000
/** Pause until the audit, in which what was written last is read by who follows it, ms. */
const settleMs = 2_000
/** How long a run goes on after a worker was held up, ms: others look for its late messages. */
const heldUpMs = 65_000
/** How long a worker may be cut off at the end of a run, and how long it records late then, ms. */
const backWithinMs = 60_000
const lateFactsMs = 10_000
/** How long the workers may take in the end until all have begun to deliver, ms. */
const deliversWithinMs = 60_000
/** Pause until a worker that could not start, or gave up, is started again, ms. */
const restartMs = 1_000

/** A worker's process and connection. */
export interface RunningWorker {
  readonly index: number
  readonly process: SimProcess
  readonly connection: SimConnection
  readonly scope: Scope.Closeable
  startedAt: number
  /** Says what keeps it from its work; undefined until it has started. */
  problems?: () => ReadonlyArray<string>
  /** The failpoint at which it crashes, and when that was reached so many times. */
  crash: { readonly step: FailpointName; left: number; readonly ms: number } | undefined
}

/** What a run came to. */
export interface Result {
  readonly seed: number
  readonly plan: Plan
  readonly failures: ReadonlyArray<Failure>
  /** Identifies all that happened. */
  readonly hash: string
  readonly virtualMs: number
  readonly steps: number
  readonly deliveries: number
  readonly requests: number
  readonly repeats: number
  /** Deliveries that the broker itself lost after it had acknowledged them. */
  readonly excused: number
  /** How often each fault struck. */
  readonly injected: ReadonlyMap<string, number>
  readonly verdict: string
  readonly log: ReadonlyArray<string>
}

type Services = Broker
type PowerCut = Extract<Action, { readonly does: "cut-power" }>

export class Simulation {
  readonly world: World
  readonly server: ModelServer
  readonly receivers: Receivers
  readonly oracle: Oracle
  readonly plan: Plan
  readonly workers: Array<RunningWorker | undefined> = []
  readonly #names = makeNames()
  /** The number of partitions; during a change that before it. */
  partitions: number
  readonly #repartitioning = new Repartitioning(this)
  readonly #connections = new Set<SimConnection>()
  readonly #operator: SimConnection
  readonly #keepsLog: boolean
  /** Ids of the events that were published, in order. */
  readonly #published: Array<string> = []
  #processes = 0
  #audits = 0
  #isEnding = false
  /** What operators and publishers have begun. */
  #operations = 0

  constructor(seed: number, plan: Plan, keepsLog = false) {
    this.plan = plan
    this.partitions = plan.partitions
    this.#keepsLog = keepsLog
    this.world = new World(seed, keepsLog)
    this.server = new ModelServer(this.world)
    this.receivers = new Receivers(this.world)
    this.#install()
    this.oracle = new Oracle(this)
    this.server.events = this.oracle
    this.#operator = this.connect("operator")
  }

  get names() {
    return this.#names
  }

  /** Runs everything to its end. */
  run(actions: ReadonlyArray<Action>): Result {
    const { plan, server, world } = this
    this.#addEndpoints()
    for (let index = 0; index < plan.workers; index++) this.#start(index)
    world.runUntil(world.now + 1_000)
    server.lostAnswers = plan.lostAnswers
    server.lostAcks = plan.lostAcks
    this.#limitDead(plan.deadBytes)
    for (const action of actions) world.after(action.at, () => this.#do(action), world.outside)
    world.runUntil(world.now + plan.activeMs)
    this.#calm()
    let looks = 0
    const calmFrom = world.now
    const isDone = () =>
      this.#operations === 0 && !this.#repartitioning.isUnderWay && this.oracle.isDone
    const untilDone = () =>
      world.runUntil(calmFrom + plan.calmMs, () => ++looks % 512 === 0 && isDone())
    untilDone()
    // What was released lately is acknowledged.
    looks = 0
    world.runUntil(world.now + 4 * plan.ackWaitMs, () => ++looks % 512 === 0 && this.#isEmpty())
    // Who was held up records as late what came too late, and others find what it has stored.
    const heldUpUntil = this.workers.map((each) => each?.connection.wasStalledUntil ?? 0)
    world.runUntil(Math.max(world.now, ...heldUpUntil.map((until) => until + heldUpMs)))
    // Who is cut off records late what it knows, once it is back.
    const areBack = () => this.workers.every((each) => each?.connection.isConnected !== false)
    if (!areBack()) world.runUntil(world.now + backWithinMs, areBack)
    const backAt = this.workers.map((each) => each?.connection.connectedAt ?? 0)
    world.runUntil(Math.max(world.now, ...backAt.map((at) => at + lateFactsMs)))
    // What was lost in a power cut, and so was excused, is stored again meanwhile.
    if (!isDone()) untilDone()
    let judgement = this.#audit()
    // An audit takes its time.
    if (!isDone()) {
      untilDone()
      judgement = this.#audit()
    }
    this.oracle.conclude(judgement)
    // A worker that was cut off takes partitions one lease period after its return.
    if (!this.#deliver()) world.runUntil(world.now + deliversWithinMs, () => this.#deliver())
    this.oracle.judgeStatus(this.#asked("observer", readStatus))
    this.#isEnding = true
    for (const worker of this.workers) if (worker !== undefined) worker.process.isAlive = false
    const { deliveries, excused, failures, repeats } = this.oracle
    return {
      ...{ seed: world.seed, plan, failures, hash: world.hash, virtualMs: world.age },
      ...{ steps: world.steps, deliveries, requests: this.receivers.log.length, repeats, excused },
      ...{ injected: server.injected, log: world.log },
      verdict: typeof judgement === "string" ? judgement : judgement.verdict
    }
  }

  /** True where what a process sends was held up on its way until some time ago, or is. */
  isStalled(process: SimProcess | undefined, since: number): boolean {
    const worker = this.workers.find((each) => each?.process === process)
    return worker !== undefined && worker.connection.wasStalledUntil > since
  }

  /** True once no worker says that it does not deliver yet. */
  #deliver(): boolean {
    const isNotYet = (problem: string) => problem === notYet.begun || problem === notYet.returned
    return this.workers.every(
      (worker) =>
        worker?.problems !== undefined &&
        !this.world.as(worker.process, worker.problems).some(isNotYet)
    )
  }

  /** True once no queue and no backlog holds a message. */
  #isEmpty(): boolean {
    const { backlog, deliveries } = this.#names
    const indexes = Array.from({ length: this.partitions }, (_, index) => index)
    return indexes.every((index) =>
      [deliveries(index), backlog(index)].every((name) => this.server.stream(name).size === 0)
    )
  }

  /** True for a process that nothing has held up lately, so that it knows what it owns. */
  isWell({ isAlive, pausedUntil, resumedAt, name }: SimProcess, forMs = 1_500): boolean {
    const { now } = this.world
    const worker = this.workers.find((each) => each?.process.name === name)
    return (
      isAlive &&
      pausedUntil <= now &&
      resumedAt < now - forMs &&
      worker?.connection.isConnected === true
    )
  }

  #install(): void {
    const { server, plan } = this
    const { ackWaitMs, eventAgeMs, historyBytes = -1, partitions, replicaLagMs } = plan
    const { deadAgeMs = defaultTopology.deadAge } = plan
    const topology = {
      ...{
        ...defaultTopology,
        intake: false,
        partitions,
        ackWait: ackWaitMs,
        eventAge: eventAgeMs
      },
      ...{ historyBytes, replicas: replicaLagMs > 0 ? 3 : 1, deadAge: deadAgeMs }
    }
    if (plan.deadAgeMs !== undefined) server.count("dead letters expire soon")
    server.replicaLagMs = replicaLagMs
    for (const { consumer, stream } of wanted(this.#names, topology, 1024 * 1024)) {
      server.addStream(stream as ModelConfig)
      if (consumer !== undefined) server.addConsumer(stream.name, consumer as ConsumerSettings)
    }
    const { workers } = this.#names.buckets
    const layout = { v: storedFormat, partitions: plan.partitions, epoch: 0, beyond: 0 }
    const data = Buffer.from(JSON.stringify(layout))
    server.stream(`KV_${workers}`).publish(`$KV.${workers}.${layoutKey}`, new Map(), data)
  }

  #limitDead(bytes: number | undefined): void {
    const dead = this.server.stream(this.#names.dead)
    dead.config = { ...dead.config, max_bytes: bytes ?? 1024 ** 3 }
    if (bytes !== undefined) this.server.count("full DEAD")
  }

  /** Makes a process and its connection. */
  connect(name: string): SimConnection {
    const process = new SimProcess(this.world, name)
    const connection = new SimConnection(this.server, process, this.#names)
    this.#connections.add(connection)
    return connection
  }

  /** Ends a process. */
  disconnect(connection: SimConnection): void {
    this.#connections.delete(connection)
    connection.process.isAlive = false
    connection.end()
  }

  /** Runs an effect as a process. `ended` is called in the process. */
  fork<A, E>(
    { broker, process }: SimConnection,
    effect: Effect.Effect<A, E, Services | Scope.Scope>,
    ended: (exit: Exit.Exit<A, E>) => void = () => {},
    reached: (step: FailpointName) => void = () => {}
  ): void {
    const seeded = chanceOf(this.world.seed, "random", process.name)
    const random = {
      nextDoubleUnsafe: () => seeded.next(),
      nextIntUnsafe: () => seeded.int(2 ** 31)
    }
    const provided = Effect.scoped(effect).pipe(
      Effect.provideService(Broker, broker),
      Effect.provideService(Failpoint, reached),
      Effect.provideService(Clock.Clock, clock),
      Effect.provideService(Random.Random, random),
      Effect.provideService(References.MinimumLogLevel, this.#keepsLog ? "Warn" : "None"),
      Effect.provideService(Scheduler.Scheduler, process.scheduler)
    )
    const begin = () => {
      const fiber = Effect.runFork(provided, { scheduler: process.scheduler })
      fiber.addObserver(ended)
    }
    this.world.after(0, begin, process)
  }

  /** Runs what an operator does, and fails the run where that is a defect. */
  #operate<A, E>(
    what: string,
    effect: Effect.Effect<A, E, Services | Scope.Scope>,
    dies?: FailpointName
  ): void {
    const connection =
      dies === undefined ? this.#operator : this.connect(`operator.${this.#processes++}`)
    this.#operations++
    const ended = (exit: Exit.Exit<A, E>) => {
      this.#operations--
      const how = Exit.isSuccess(exit) ? "done" : Cause.pretty(exit.cause).split("\n")[0]
      this.world.trace(`operator: ${what}: ${how}`)
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        this.oracle.fail("defect", `${what}: ${Cause.pretty(exit.cause)}`)
    }
    this.fork(connection, effect, ended, (step) => {
      if (step !== dies || !connection.process.isAlive) return
      this.server.count(`crash at ${step}`)
      this.world.trace(`operator: ${what}: dies at ${step}`)
      this.disconnect(connection)
      this.#operations--
    })
  }

  #addEndpoints(): void {
    const { endpoints, hostCap } = this.plan
    for (const [index, endpoint] of endpoints.entries()) {
      const { failing, failures, isMoved, retryAfter, slowMs } = endpoint
      const behaviour = { failing, failures, isMoved, retryAfter, slowMs }
      this.receivers.behaviours.set(`hook${index}`, behaviour)
      this.#operate(`add hook${index}`, this.#add(index, 0))
    }
    if (hostCap !== undefined)
      this.#operate("cap the host", setTenant(tenant, { hostCap }, "simulation"))
    this.world.runUntil(this.world.now + 500)
  }

  #add(index: number, generation: number) {
    const { types = [">"], ...limits }: Partial<PlannedEndpoint> & EndpointLimits = this.plan
      .endpoints[index] ?? { maxInFlight: 1, hasCircuit: false, windowMs: 900_000 }
    if (limits.rate !== undefined && generation === 0) this.server.count("a rate")
    const endpoint = decodeEndpoint({
      ...{ v: 1, tenant, id: `hook${index}`, generation: `g${index}.${generation}` },
      ...{ url: `http://192.0.2.1/hook${index}`, types, sign: "standard", ...limited(limits) },
      secrets: [{ value: secret, createdAt: epochMs }],
      ...{ alerts: "off", redirects: 1, headers: {}, createdAt: epochMs, updatedAt: epochMs }
    })
    return addEndpoint(endpoint, "simulation")
  }

  #start(index: number): void {
    if (this.#isEnding || this.workers[index] !== undefined) return
    const { plan, world } = this
    if (this.#repartitioning.isUnderWay) {
      world.after(restartMs, () => this.#start(index), world.outside)
      return
    }
    const connection = this.connect(`w${index}.${this.#processes++}`)
    const { process } = connection
    const scope = Effect.runSync(Scope.make())
    const started: RunningWorker = {
      ...{ index, process, connection, scope, startedAt: world.now, crash: undefined }
    }
    this.workers[index] = started
    world.trace(`${process.name} starts`)
    this.oracle.joined()
    const worker = Effect.gen({ self: this }, function* () {
      const { problems, refused } = yield* startWorker({
        id: `w${index}`,
        roles: ["router", "deliver"],
        allowNetworks: [],
        stopWithin: stopWithinMs,
        maxWaiting: plan.maxWaiting,
        leastLeftBytes: plan.leavesBodies === true ? 1 : undefined,
        makeConnections: this.receivers.connections(process)
      })
      started.problems = problems
      yield* refused
    }).pipe(Scope.provide(scope))
    const ended = (exit: Exit.Exit<void, unknown>) => {
      if (this.workers[index]?.process !== process) return
      if (Exit.isFailure(exit)) {
        const why = Cause.pretty(exit.cause)
        world.trace(`${process.name} ends: ${why.split("\n")[0]}`)
        if (Cause.hasDies(exit.cause)) this.oracle.fail("defect", `${process.name}: ${why}`)
      }
      this.#end(index, restartMs)
    }
    this.fork(connection, worker, ended, (step) => this.#reached(started, step))
  }

  #reached(worker: RunningWorker, step: FailpointName): void {
    const { crash, index, process } = worker
    if (crash?.step !== step || !process.isAlive || --crash.left > 0) return
    worker.crash = undefined
    this.server.count(`crash at ${step}`)
    this.world.trace(`${process.name} crashes at ${step}`)
    this.#end(index, crash.ms)
  }

  /** Ends a worker's process, and starts another after a time. */
  #end(index: number, downMs: number): void {
    const worker = this.workers[index]
    if (worker === undefined) return
    const { connection, process } = worker
    this.workers[index] = undefined
    this.disconnect(connection)
    this.receivers.died(process)
    this.oracle.disturbed(downMs)
    this.world.after(downMs, () => this.#start(index), this.world.outside)
  }

  #do(action: Action): void {
    const { server, world } = this
    if (action.does === "publish") {
      this.#operations++
      this.#publish(action.id, action.type)
      return
    }
    world.trace(JSON.stringify(action))
    this.oracle.disturbed("ms" in action ? action.ms : 0)
    switch (action.does) {
      case "crash":
      case "break":
      case "pause":
      case "roll":
      case "crash-at":
      case "lag":
      case "stall":
      case "step-clock":
        this.#disturb(action)
        return
      case "kill-broker":
        server.count(action.does)
        this.#killBroker(action.ms, () => {}, action.forgets)
        return
      case "cut-power":
        server.count(action.does)
        if (action.buckets === true) server.count("cut-power of buckets")
        this.#killBroker(action.ms, () => this.#loseEnds(action))
        return
      case "stick-stream": {
        const { dead, deliveries, history } = this.#names
        const names = [history, dead, deliveries(0), `KV_${this.#names.buckets.retries}`]
        const stream = server.stream(names[action.stream] ?? history)
        server.count(action.does)
        stream.isStuck = true
        world.after(
          action.ms,
          () => {
            stream.isStuck = false
          },
          world.outside
        )
        return
      }
      case "repartition":
        this.#repartitioning.begin(action.to, action.dies)
        return
      case "elect":
        this.#elect(action)
        return
      case "audit":
        this.#auditMeanwhile()
        return
      case "limit-host": {
        const { hostCap } = action
        server.count(action.does)
        this.oracle.limitedHost(hostCap)
        this.#operate("cap the host", setTenant(tenant, { hostCap }, "simulation"))
        return
      }
      default:
        this.#change(action)
        return
    }
  }

  /** The leader of a stream and its consumers steps down; another one is elected after a time. */
  #elect({ ms, stream: index }: Extract<Action, { readonly does: "elect" }>): void {
    const { server, world } = this
    const all = [...server.streams.values()]
    const stream = all[index % all.length]
    if (stream === undefined || server.isDown) return
    server.count("elect")
    world.trace(`${stream.name} has no leader`)
    stream.stepDown()
    const elected = () => {
      stream.hasLeader = true
      world.trace(`${stream.name} has a leader`)
      for (const consumer of stream.consumers.values()) consumer.pump()
    }
    world.after(ms, elected, world.outside)
  }

  #publish(id: string, type: string): void {
    const { events } = this.#names
    const stream = this.server.stream(events)
    // A publisher tries again until its event is acknowledged.
    if (this.server.isDown) {
      this.world.after(500, () => this.#publish(id, type), this.world.outside)
      return
    }
    this.#operations--
    const headers = new Map([["Nats-Msg-Id", id]])
    stream.publish(`events.${tenant}.${type}`, headers, Buffer.from(JSON.stringify({ id })))
    this.#published.push(id)
  }

  #disturb(action: Extract<Action, { readonly worker: number }>): void {
    const { server, world } = this
    const worker = this.workers[action.worker]
    if (worker === undefined) return
    const { connection, process } = worker
    server.count(action.does)
    switch (action.does) {
      case "crash":
        this.#end(action.worker, action.ms)
        return
      case "break":
        connection.breakFor(action.ms)
        return
      case "crash-at":
        worker.crash = { step: action.step, left: action.nth, ms: action.ms }
        return
      case "stall":
        connection.stalledUntil = world.now + action.ms
        // What an earlier one holds up arrives no sooner.
        connection.wasStalledUntil = Math.max(connection.wasStalledUntil, connection.stalledUntil)
        return
      case "pause":
        world.pause(process, action.ms)
        return
      case "lag":
        connection.watchLagMs = action.ms
        world.after(
          action.ms,
          () => {
            connection.watchLagMs = 0
          },
          world.outside
        )
        return
      case "step-clock":
        process.clockOffset += action.by
        world.after(
          action.ms,
          () => {
            process.clockOffset -= action.by
          },
          world.outside
        )
        return
      case "roll":
        this.roll(worker, action.ms)
    }
  }

  /** Stops a worker, and starts it again after a time, ms. */
  roll({ connection, index, process, scope }: RunningWorker, ms: number): void {
    const { world } = this
    const gone = () => {
      if (this.workers[index]?.process === process) this.#end(index, ms)
    }
    this.fork(connection, Scope.close(scope, Exit.void), () => world.after(0, gone, world.outside))
    world.after(killAfterMs, gone, world.outside)
  }

  /** Kills the broker; `meanwhile` is what happens to its store. */
  #killBroker(ms: number, meanwhile: () => void, forgets = 0): void {
    const { server, world } = this
    if (server.isDown) return
    server.killed(forgets)
    if (forgets > 0) this.oracle.forgot()
    for (const connection of [...this.#connections]) connection.breakFor(ms)
    meanwhile()
    world.after(ms, () => server.back(), world.outside)
  }

  /** A power cut takes the end of most streams, each to another point. */
  #loseEnds({ at, buckets: isOfBuckets = false, lost: most }: PowerCut): void {
    const chance = chanceOf(this.world.seed, "cut", at)
    const { backlog, buckets, dead, deliveries, events, history } = this.#names
    const names = [events, history, dead, `KV_${buckets.retries}`, `KV_${buckets.health}`]
    for (let index = 0; index < this.partitions; index++)
      names.push(deliveries(index), backlog(index))
    const { alerts, endpoints, workers } = buckets
    if (isOfBuckets) names.push(`KV_${endpoints}`, `KV_${workers}`, `KV_${alerts}`)
    for (const name of names) {
      if (chance.isHit(0.4)) continue
      const stream = this.server.streams.get(name)
      if (stream === undefined) continue
      // Without the layout nothing runs until somebody says `petrel init`.
      const kept = stream.lastOf(`$KV.${workers}.${layoutKey}`)?.seq ?? 0
      const count = Math.min(stream.lastSeq - kept, 1 + chance.int(most))
      this.world.trace(`${name} loses ${count} of ${stream.lastSeq}`)
      if (count > 0) this.oracle.setBack(stream)
      stream.truncate(count, (message) => this.oracle.lost(stream, message))
    }
  }

  #change(action: Extract<Action, { readonly endpoint: number }>): void {
    const id = `hook${action.endpoint}`
    const { server, world } = this
    const by = "simulation"
    const key = { tenant, endpoint: id }
    const later = (what: string, effect: Effect.Effect<unknown, unknown, Services>) => {
      const ms = "ms" in action ? action.ms : 0
      // Who finds the broker away tries again.
      const surely = Effect.retry(effect, {
        schedule: Schedule.spaced("1 second"),
        while: (error) => error instanceof BrokerError
      })
      world.after(ms, () => this.#operate(`${what} ${id}`, surely), world.outside)
    }
    server.count(action.does)
    switch (action.does) {
      case "retype": {
        const types = chanceOf(world.seed, "types", action.at).pick([
          [">"] as const,
          ["invoice.>"] as const,
          ["user.*"] as const
        ])
        const change = changeEndpoint(
          tenant,
          id,
          (before) => Effect.succeed({ ...before, types }),
          {
            by
          }
        )
        this.#operate(`retype ${id}`, change)
        return
      }
      case "limit": {
        const limits = limited(action.limits)
        this.oracle.limited(id, action.limits)
        const change = changeEndpoint(
          tenant,
          id,
          (before) => {
            const { rate: _, ...others } = encodeEndpoint(before)
            return Effect.succeed(decodeEndpoint({ ...others, ...limits }))
          },
          { by }
        )
        this.#operate(`limit ${id}`, change)
        return
      }
      case "disable":
        this.#operate(`disable ${id}`, disableEndpoint(key, "by hand", by))
        later("enable", enableEndpoint(key, by))
        return
      case "hold":
        this.#operate(`pause ${id}`, pauseEndpoint(key, undefined, by))
        later("resume", resumeEndpoint(key, by))
        return
      case "remove":
        this.#operate(`remove ${id}`, removeEndpoint(tenant, id, by))
        later("add", this.#add(action.endpoint, Math.round(action.at)))
        return
      case "redeliver":
        this.#operate(
          `redeliver to ${id}`,
          Effect.flatMap(planRedelivery({ endpoint: { tenant, id } }, { by }), ({ run }) => run()),
          action.dies
        )
        return
      case "replay":
        this.#operate(
          `replay to ${id}`,
          Effect.flatMap(
            startReplay({ to: { tenant, id }, id: `r${Math.round(action.at)}` }, { by }),
            ({ run }) => run()
          ),
          action.dies
        )
        return
      case "resend": {
        const event = this.#published.at(-1 - (action.event % this.#published.length))
        if (event !== undefined)
          this.#operate(
            `resend ${event}.${id}`,
            resendDelivery(`${event}.${id}`, tenant, by),
            action.dies
          )
        return
      }
      case "discard":
        this.#operate(
          `discard of ${id}`,
          Effect.flatMap(planDiscard({ endpoint: { tenant, id } }), ({ run }) => run(by))
        )
        return
      case "retry-now": {
        const ended = this.oracle.retriesNow(id)
        const retry = retryEndpointNow({ tenant, id }, {}, by).pipe(
          Effect.tap(({ moved }) =>
            Effect.sync(() => moved > 0 && server.count("moved by retry-now"))
          ),
          Effect.ensuring(Effect.sync(ended))
        )
        this.#operate(`retry ${id} now`, retry)
        return
      }
    }
  }

  /** All that is wrong with the surroundings ends, but for receivers that never answer well. */
  #calm(): void {
    const { receivers, server } = this
    server.lostAnswers = 0
    server.lostAcks = 0
    this.#limitDead(undefined)
    // Receivers are quick now; some still never answer well.
    for (const [id, before] of receivers.behaviours)
      receivers.behaviours.set(id, {
        ...{ ...before, failing: Math.floor(before.failing), slowMs: 20 },
        failures: before.failures.filter((answer) => answer !== "timeout").concat(500)
      })
    this.world.trace("calm")
  }

  /** Audits beside everything else. An audit that finds no broker says nothing. */
  #auditMeanwhile(): void {
    const { oracle, server } = this
    server.count("audit")
    const connection = this.connect(`auditor.${this.#audits++}`)
    this.fork(connection, audit({}), (exit) => {
      this.disconnect(connection)
      if (Exit.isSuccess(exit)) oracle.judgeMeanwhile(exit.value.judgement)
      else if (Cause.hasDies(exit.cause))
        oracle.fail("defect", `audit: ${Cause.pretty(exit.cause)}`)
    })
  }

  /** Returns what the audit says of the streams; or why it failed. */
  #audit(): Judgement | string {
    this.world.runUntil(this.world.now + settleMs)
    // A stream whose leader steps down last of all would not answer it.
    const areLed = () => [...this.server.streams.values()].every(({ hasLeader }) => hasLeader)
    if (!areLed()) this.world.runUntil(this.world.now + 60_000, areLed)
    const found = this.#asked("auditor", audit({}))
    return typeof found === "string" ? found : found.judgement
  }

  /** Returns what a process of its own finds; or why it failed. */
  #asked<A, E>(name: string, effect: Effect.Effect<A, E, Services | Scope.Scope>): A | string {
    let found: A | string | undefined
    this.fork(this.connect(name), effect, (exit) => {
      found = Exit.isSuccess(exit) ? exit.value : Cause.pretty(exit.cause)
    })
    this.world.runUntil(this.world.now + 10 * 60_000, () => found !== undefined)
    return found ?? "no answer"
  }
}
