import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { PubAck, PublishError } from "../../src/broker/publication.ts"
import type { StoreFailure } from "../../src/broker/publish-once.ts"
import { makeNames } from "../../src/domain/names.ts"
import { DeliveryStore } from "../../src/routing/delivery-store.ts"
import { makeFanOut } from "../../src/routing/fan-out.ts"
import type {
  BacklogCandidate,
  DirectDelivery,
  DirectEnd
} from "../../src/routing/partition-owner.ts"
import { PlanCommit } from "../../src/routing/plan-commit.ts"
import type { PlanStore } from "../../src/routing/plan-store.ts"
import type { RoutingProgress } from "../../src/routing/routing-progress.ts"
import { elapsedMs } from "../../src/time/elapsed.ts"
import { makeLog } from "../kit/log.ts"
import { event, makeMessage, planFor, work } from "./made-routing.ts"

export const safeRepublishMs = 60_000
const partitions = 2
const stored: PubAck = { stream: "", seq: 1, duplicate: false }

/** What this worker's partitions, the broker and the history do. */
export interface World {
  /** How a direct delivery goes: it is not taken, is under way, or has ended at once. */
  readonly direct: (endpoint: string) => "not taken" | "under way" | DirectEnd
  /** How a backlog answers: it does not take the delivery, or has stored it, or has failed. */
  readonly backlog: "not taken" | "stored" | StoreFailure
  /** How the broker answers what is sent to a queue. */
  readonly queue: "stored" | "no answer yet" | PublishError
  readonly history: "stored" | "refuses"
  /** Whether the plan is stored before the fan-out begins. */
  readonly isPlanStored: boolean
  /** Maximum bytes in direct delivery; the event has 2. */
  readonly bytes: number
  /** Whether another router may have the event meanwhile; asked each time. */
  readonly mayBeRedelivered: () => boolean
}

const usual: World = {
  direct: () => "not taken",
  backlog: "not taken",
  queue: "stored",
  history: "stored",
  isPlanStored: true,
  bytes: 1_000,
  mayBeRedelivered: () => false
}

/** All that happens to deliveries, in order. */
class Happenings {
  readonly log: Array<string> = []
  readonly direct = new Map<string, DirectDelivery>()
  /** Endpoints whose delivery was sent to a queue. */
  readonly queued: Array<string> = []
  /** Let the broker answer what it has not answered yet. */
  readonly answers: Array<() => void> = []

  /** The partitions of this worker. */
  ownedIn({ backlog, direct }: World) {
    return {
      attempt: (_: number, delivery: DirectDelivery) => {
        const { endpoint } = delivery.delivery
        const how = direct(endpoint)
        if (how === "not taken") return false
        this.log.push(`attempt ${endpoint}`)
        this.direct.set(endpoint, delivery)
        if (how !== "under way") delivery.ended(how)
        return true
      },
      storeInBacklog: (_: number, { delivery, ended }: BacklogCandidate) => {
        if (backlog === "not taken") return false
        this.log.push(`backlog ${delivery.endpoint}`)
        ended(backlog === "stored" ? undefined : backlog)
        return true
      }
    }
  }

  storeIn(world: World): DeliveryStore {
    const send: ConstructorParameters<typeof DeliveryStore>[0]["send"] = (
      subject,
      body,
      headers,
      settle
    ) => {
      const endpoint = subject.split(".").at(-1) ?? ""
      const header = new Map(headers)
      assert.strictEqual(header.get("Nats-Msg-Id"), `7@${event.at}.0.${endpoint}`)
      const { attempts } = JSON.parse(header.get("petrel-progress") ?? `{"attempts":0}`)
      const left = header.get("petrel-left-bytes")
      assert.strictEqual(body.length, left === undefined ? 2 : 0)
      const without = left === undefined ? "" : ` without its ${left} bytes`
      this.log.push(`queue ${endpoint}${attempts > 0 ? ` after ${attempts}` : ""}${without}`)
      this.queued.push(endpoint)
      const { queue } = world
      if (queue === "no answer yet") this.answers.push(() => settle(stored))
      else settle(queue === "stored" ? stored : queue)
    }
    return new DeliveryStore({ names: makeNames(), send }, partitions, this.ownedIn(world))
  }

  plansIn({ history }: World): PlanStore {
    return {
      safeRepublishMs,
      tryStore: (_, __, ___, settle) => {
        this.log.push("plan")
        settle(history === "stored" ? stored : undefined)
      },
      storeWithin: () => Effect.die("the fan-out has no fiber"),
      find: () => Effect.die("the fan-out has no fiber")
    }
  }
}

/** A fan-out to these endpoints that has begun, and what comes of it. */
export const fanOutTo = (ids: ReadonlyArray<string>, changes: Partial<World> = {}) => {
  const world = { ...usual, ...changes }
  const happenings = new Happenings()
  const { answers, direct, log, queued } = happenings
  const ends: Array<"complete" | RoutingProgress> = []
  const slow: Array<number> = []
  const plans = happenings.plansIn(world)
  const planCommit = new PlanCommit(plans, event, planFor(...ids), event.at, elapsedMs())
  if (world.isPlanStored) planCommit.commit()
  log.length = 0
  const scope = Scope.makeUnsafe()
  const options = {
    ...{ partitions, bytes: world.bytes, store: happenings.storeIn(world) },
    ...{ hasOtherTenants: () => false, mayBeRedelivered: () => world.mayBeRedelivered() },
    owned: happenings.ownedIn(world)
  }
  const defects = makeLog()
  const fanOut = Effect.runSync(
    Scope.provide(makeFanOut(options), scope).pipe(Effect.provide(defects.layer))
  )
  const { message } = makeMessage()
  const keys = ids.map((id) => `acme.${id}`)
  fanOut({ message, planCommit, keys, began: elapsedMs() }, work, {
    onComplete: () => void ends.push("complete"),
    onFallback: (progress) => void ends.push(progress),
    onSlow: (remaining) => void slow.push(remaining)
  })
  return {
    ...{ answers, defects, direct, ends, log, queued, slow },
    /** Ends a direct delivery that is under way. */
    end: (endpoint: string, how: DirectEnd) => direct.get(endpoint)?.ended(how),
    close: () => Effect.runSync(Scope.close(scope, Exit.void))
  }
}
