import { Clock, Effect } from "effect"
import { readLayout, refuseChange, TopologyError } from "../broker/installed.ts"
import type { Delivery, RoundIdentity } from "../domain/delivery.ts"
import { isHeldBack } from "../domain/endpoint.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import { forwardedTo } from "../endpoints/inherited-settings.ts"
import type { Windows } from "../endpoints/live-endpoint.ts"
import { windowsOf } from "../endpoints/live-endpoint.ts"
import { readSettingsInForce } from "../endpoints/settings-store.ts"
import { type ClockComparison, clockState, differs, skewMs } from "../policy/clock-skew.ts"

/** A further round of one of an endpoint's deliveries. */
export interface Round extends RoundIdentity {
  /** Sequence in DEAD of the dead letter that is redelivered. */
  readonly dead?: number
}

/** What a round sends. */
export interface Contents extends Pick<Delivery, "event" | "type" | "content" | "origin"> {
  readonly body: Uint8Array
}

/**
 * The result of starting a round: `begun`; `finished`, if it was claimed and not stored before;
 * `before`, if it had begun already; or `gone`, if there is nothing left to send. A claimed round
 * ends with `gone`.
 */
export type StartedRound = "begun" | "finished" | "before" | "gone"

/** Numbers of rounds by what came of them. */
export type RoundCounts = Readonly<Record<StartedRound, number>>

/** The endpoint of the rounds, as configured now. */
export interface RoundTarget extends Windows {
  readonly tenant: string
  readonly endpoint: string
  readonly generation: string
  readonly revision: number
  /** Names of the publisher's headers that it gets, in lower case: those of its tenant first. */
  readonly forwards: ReadonlyArray<string>
}

/** Why an endpoint accepts no further rounds. */
export type Unfit = "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"

const noWindows = { window: 0, windows: undefined }

/** Reads the endpoint, and why it accepts nothing, if so. */
export const readTarget = Effect.fnUntraced(function* (tenant: string, endpoint: string) {
  const unfit = (why: Unfit) => ({
    target: {
      ...{ tenant, endpoint, generation: "none", revision: 0, forwards: [] },
      ...noWindows
    } satisfies RoundTarget,
    unfit: why,
    waits: false
  })
  const settings = yield* readSettingsInForce(tenant)
  return yield* getEndpoint(tenant, endpoint).pipe(
    Effect.map(({ endpoint: config, revision }) => ({
      target: {
        tenant,
        endpoint,
        generation: config.generation,
        revision,
        ...windowsOf(config),
        forwards: forwardedTo(config, settings)
      } satisfies RoundTarget,
      unfit: config.disabled === undefined ? undefined : ("endpoint-disabled" as const),
      waits: isHeldBack(config)
    })),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed(unfit("endpoint-removed")),
      EndpointUnreadable: () => Effect.succeed(unfit("endpoint-unreadable"))
    })
  )
})

/** Fails if this machine's clock is wrong: deadlines of rounds are computed from it. */
const refuseWrongClock = (comparison: ClockComparison) => {
  const skew = skewMs(comparison)
  return clockState(skew) === "wrong"
    ? new TopologyError({
        message: `${differs(skew)}, so deliveries would be given up too early or too late: correct the wrong clock, for example with NTP`
      })
    : Effect.void
}

/**
 * Returns the layout and a check that it has not changed: a message stored by another number of
 * partitions would lie where its owner does not look. Fails during a repartition, and if this
 * machine's clock differs from the broker's by more than 30 s.
 */
export const steadyLayout = Effect.gen(function* () {
  const { epoch } = yield* refuseChange
  const askedAt = yield* Clock.currentTimeMillis
  const { brokerMs: brokerAt, ...layout } = yield* readLayout
  const answeredAt = yield* Clock.currentTimeMillis
  if (!Number.isNaN(brokerAt)) yield* refuseWrongClock({ askedAt, brokerAt, answeredAt })
  return {
    layout,
    unchanged: Effect.flatMap(refuseChange, (now) =>
      now.epoch === epoch
        ? Effect.void
        : Effect.fail(
            new TopologyError({
              message:
                "the number of partitions has been changed meanwhile: run the same command again"
            })
          )
    )
  }
})

export type SteadyLayout = Effect.Success<typeof steadyLayout>
