import { Cause, Effect, Exit } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { PublishError } from "../../broker/publication.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Stored, StoreRequest } from "./backlog-write.ts"
import { EndpointWrites } from "./endpoint-writes.ts"
import { PendingStores } from "./pending-stores.ts"
import type { WriteStepsOptions } from "./write-steps.ts"
import { retryPauseMs, WriteSteps } from "./write-steps.ts"

export interface BacklogWriterOptions extends Omit<WriteStepsOptions, "broker"> {
  /** True where a delivery is stored as a reference to its event, false with its body. */
  readonly asReference: (delivery: Delivery) => boolean
  /** Runs an effect in the background until the partition is released. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Writes what waits into the backlogs of a partition's endpoints. One write per endpoint is under
 * way; what comes meanwhile forms the next.
 *
 * Each write names the last message of its endpoint that the writer knows of, so the broker stores
 * it only once, and refuses it where a former owner has written since. A refused or unanswered write
 * is settled by what the leader has, never by guessing.
 */
export class BacklogWriter {
  readonly #options: BacklogWriterOptions
  readonly #broker: Broker["Service"]
  readonly #endpoints = new Map<string, EndpointWrites>()
  readonly #pending: PendingStores
  readonly #steps: WriteSteps

  constructor(broker: Broker["Service"], options: BacklogWriterOptions) {
    this.#broker = broker
    this.#options = options
    this.#pending = new PendingStores(options.asReference)
    this.#steps = new WriteSteps({ ...options, broker }, this.#pending)
  }

  /**
   * Stores a delivery at the end of its endpoint's backlog. A repeated store of the same place joins
   * the earlier one. Fails with PublishError, after which it is repeated or given up by the caller;
   * one that was not answered may be stored nonetheless.
   */
  store(request: StoreRequest): Effect.Effect<Stored, PublishError> {
    return Effect.callback((resume) => {
      const { endpoint, tenant } = request.delivery
      const key = endpointKey(tenant, endpoint)
      const known = this.#pending.outcomeOf(key, request)
      if (known !== undefined) return resume(Effect.succeed(known))
      const writes = this.#writesOf(key)
      const pending = this.#pending.join(key, request, resume, (one) => writes.queue.push(one))
      this.#wake(writes)
      return Effect.sync(() => {
        pending.callers.delete(resume)
        if (pending.callers.size > 0 || pending.isSent) return
        this.#pending.drop(pending)
        writes.takeBack(pending)
      })
    })
  }

  /**
   * Tells where an endpoint's backlog ends.
   *
   * @param tail sequence of its last message; 0 where the leader says that it is empty. (Default:
   * the leader is asked before the first write)
   */
  opened(key: string, tail?: number): void {
    const writes = this.#writesOf(key)
    if (tail !== undefined && writes.write === undefined) writes.tail = tail
  }

  /** Forgets an endpoint whose backlog is empty, unless something is being written. */
  closed(key: string): void {
    if (this.#endpoints.get(key)?.hasWork === true) return
    this.#endpoints.delete(key)
    this.#steps.forget(key)
  }

  /** Tells that all of an endpoint's messages below a sequence are gone. */
  purged(key: string, below: number): void {
    this.#endpoints.get(key)?.purged(below)
  }

  /** True while a write may be stored of which the outcome is unknown: nothing may be purged. */
  isUnsure(key: string): boolean {
    return this.#endpoints.get(key)?.write?.isUnsure === true
  }

  /** Tells what is known of a store of a delivery, even of one that its caller has given up. */
  standing(delivery: Delivery): "stored" | "storing" | undefined {
    return this.#pending.standing(endpointKey(delivery.tenant, delivery.endpoint), delivery)
  }

  /** True while no store has an unknown outcome, and no known one waits for its caller. */
  get isIdle(): boolean {
    return this.#pending.isIdle
  }

  #writesOf(key: string): EndpointWrites {
    const known = this.#endpoints.get(key)
    if (known !== undefined) return known
    const [tenant = "", endpoint = ""] = key.split(".")
    const { names } = this.#broker
    const { index } = this.#options
    const subject = names.subjects.backlog(index, tenant, endpoint)
    const writes = new EndpointWrites(key, { stream: names.backlog(index), subject })
    this.#endpoints.set(key, writes)
    return writes
  }

  #wake(writes: EndpointWrites): void {
    writes.wake()
    if (writes.isWorking) return
    writes.isWorking = true
    this.#options.run(this.#work(writes))
  }

  /** Writes until nothing is left to do for an endpoint. */
  #work(writes: EndpointWrites): Effect.Effect<void> {
    const step = Effect.catch(this.#steps.step(writes), (error) => {
      // A caller may repeat its store at once.
      const pause = writes.pause(retryPauseMs)
      this.#failAll(writes, error)
      return pause
    })
    const all = Effect.whileLoop({ while: () => writes.hasWork, body: () => step, step: () => {} })
    // What is stored in the same turn of the loop goes into one message.
    return Effect.onExit(Effect.andThen(Effect.yieldNow, all), (exit) => {
      writes.isWorking = false
      if (Exit.isSuccess(exit)) return Effect.void
      const detail = "the partition was released"
      const { subject } = writes.of
      this.#failAll(writes, new PublishError({ subject, reason: "closed", code: 0, detail }))
      return Cause.hasInterrupts(exit.cause)
        ? Effect.void
        : Effect.logError(`storing what waits for ${writes.key} met a defect`, exit.cause)
    })
  }

  /**
   * Fails all callers of an endpoint, as its backlog does not answer. What may be stored goes on to
   * be settled, and a caller that repeats its store joins it.
   */
  #failAll({ queue, write }: EndpointWrites, error: PublishError): void {
    for (const request of queue.splice(0)) this.#pending.fail(request, error)
    const sent = (write?.parts.requests ?? []).flatMap(({ callers }) => {
      const all = [...callers]
      callers.clear()
      return all
    })
    for (const resume of sent) resume(Effect.fail(error))
  }
}
