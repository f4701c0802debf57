/*
 * Receivers and the network to them, in the place of undici's agent: how each request is answered is
 * drawn from the endpoint, the event and the attempt alone. Name look-ups, TCP, TLS, the reuse of
 * connections and undici itself are not simulated; timeouts, redirects and the reading of answers are
 * the engine's own.
 */
import { Effect } from "effect"
import type { Agent, Dispatcher } from "undici"
import type { WorkerOptions } from "../../src/worker/node.ts"
import { chanceOf } from "./chance.ts"
import type { SimProcess, World } from "./world.ts"

/** How a request ended at its receiver. */
export type Answer = number | "timeout" | "reset" | "refused"

/** A request that a receiver got, as it saw it. */
export interface Received {
  /** When it came, ms of the world's time. */
  readonly at: number
  /** When the worker began it. */
  readonly begunAt: number
  readonly endpoint: string
  readonly event: string
  readonly attempt: number
  readonly from: SimProcess
  readonly answer: Answer
}

/** How an endpoint's receiver behaves. */
export interface Behaviour {
  /** Share of requests that fail. */
  failing: number
  /** How they fail. */
  readonly failures: ReadonlyArray<Answer>
  /** Longest time until an answer, ms. */
  readonly slowMs: number
  /** Answers with a redirect first. */
  readonly isMoved: boolean
  /** Seconds that a 429 or 503 asks to wait. */
  readonly retryAfter: number
}

/** A request in flight. */
interface Open {
  readonly from: SimProcess
  readonly endpoint: string
  readonly controller: Dispatcher.DispatchController
}

/** The part of undici's handler that an attempt has. */
type Handler = Required<
  Pick<
    Dispatcher.DispatchHandler,
    "onRequestStart" | "onResponseStart" | "onResponseEnd" | "onResponseError"
  >
>

const resetError = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
const refusedError = () =>
  Object.assign(new Error("connect ECONNREFUSED 192.0.2.1:80"), { code: "ECONNREFUSED" })

export class Receivers {
  readonly log: Array<Received> = []
  readonly behaviours = new Map<string, Behaviour>()
  readonly #world: World
  readonly #open = new Set<Open>()
  /** Called when a request has begun. */
  onBegun: (endpoint: string) => void = () => {}

  constructor(world: World) {
    this.#world = world
  }

  /** Requests in flight of processes that are well, to one endpoint or all. */
  inFlight(isCounted: (open: Pick<Open, "endpoint" | "from">) => boolean): number {
    let count = 0
    for (const open of this.#open) if (isCounted(open)) count++
    return count
  }

  /** A process has died: its connections are closed. */
  died(process: SimProcess): void {
    for (const { controller, from } of [...this.#open])
      if (from === process) controller.abort(resetError())
  }

  /** What a worker makes its connections with. */
  connections(process: SimProcess): NonNullable<WorkerOptions["makeConnections"]> {
    const agent = {
      dispatch: (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) =>
        this.#dispatch(process, options, handler as unknown as Handler)
    } as unknown as Agent
    return () =>
      Effect.succeed({
        agentOf: () => agent,
        check: () => Effect.die(new Error("connections are not checked in the simulation"))
      })
  }

  #dispatch(
    process: SimProcess,
    { headers, path }: Dispatcher.DispatchOptions,
    handler: Handler
  ): boolean {
    const world = this.#world
    const list = headers as ReadonlyArray<string>
    const header = (name: string) => list[list.indexOf(name) + 1] ?? ""
    const [, endpoint = "", sub] = path.split("/")
    const event = header("webhook-id")
    const attempt = Number(header("petrel-attempt"))
    const chance = chanceOf(world.seed, path, event, attempt)
    const behaviour = this.behaviours.get(endpoint)
    const { failures = [], isMoved = false, retryAfter = 5, slowMs = 20 } = behaviour ?? {}
    const isFailing = chance.isHit(behaviour?.failing ?? 0)
    const answer: Answer =
      isMoved && sub === undefined ? 307 : isFailing ? chance.pick(failures) : 200
    let isOver = false
    const open: Open = {
      from: process,
      endpoint,
      controller: {
        aborted: false,
        paused: false,
        reason: null,
        abort: () => {
          isOver = true
          this.#open.delete(open)
        },
        pause: () => {},
        resume: () => {}
      }
    }
    this.#open.add(open)
    this.onBegun(endpoint)
    const begunAt = world.now
    const connectMs = chance.between(0.2, 3)
    const arriveMs = connectMs + chance.between(0.5, 3)
    const answerMs = arriveMs + chance.between(1, slowMs)
    const fail = (error: Error) => {
      if (isOver) return
      isOver = true
      this.#open.delete(open)
      handler.onResponseError(open.controller, error)
    }
    if (answer === "refused") {
      world.after(connectMs, () => fail(refusedError()), process)
      return true
    }
    const start = () => {
      if (!isOver) handler.onRequestStart(open.controller, {})
    }
    world.after(connectMs, start, process)
    // The receiver has it from then on, whatever becomes of the worker.
    const arrive = () => {
      if (isOver && process.isAlive) return
      const received = { at: world.now, begunAt, endpoint, event, attempt, from: process, answer }
      if (answer !== 307) this.log.push(received)
      world.trace(`${endpoint} gets ${event} attempt ${attempt} from ${process.name}: ${answer}`)
    }
    world.after(arriveMs, arrive, world.outside)
    if (answer === "timeout") return true
    const respond = () => {
      if (isOver) return
      if (answer === "reset") return fail(resetError())
      isOver = true
      this.#open.delete(open)
      const waits = answer === 429 || answer === 503
      const found = waits ? { "retry-after": String(retryAfter) } : {}
      const moved = answer === 307 ? { location: `/${endpoint}/there` } : {}
      handler.onResponseStart(open.controller, answer, { ...found, ...moved }, "")
      handler.onResponseEnd(open.controller, {})
    }
    world.after(answerMs, respond, process)
    return true
  }
}
