import { Schema } from "effect"
import { remadeGap } from "../../broker/losses.ts"
import { defaultTtl } from "../../cluster/ownership.ts"
import type { Heartbeat } from "../../cluster/roster.ts"
import type { PartitionSurvey, Survey } from "../../delivery/introspection/survey.ts"
import type { Bypass } from "../../policy/bypass.ts"
import { type ClockState, clockState, maxSkewMs, skewText } from "../../policy/clock-skew.ts"
import { plainText } from "../../text/plain-text.ts"
import { countText, plural, rangesText, spanText } from "../../text/quantities.ts"

/** A problem or notice, with what to do about it. */
export const Condition = Schema.Struct({
  code: Schema.String.annotateKey({ description: "A stable code for programs." }),
  text: Schema.String.annotateKey({ description: "What is so, and what to do about it." })
})
export type Condition = typeof Condition.Type

/** What is to be said of an installation. */
export const Conditions = Schema.Struct({
  problems: Schema.Array(Condition).annotateKey({
    description: "Work has stopped or is about to stop until an operator acts."
  }),
  notices: Schema.Array(Condition).annotateKey({
    description: "Notable states, and states that pass without action."
  })
})
export type Conditions = typeof Conditions.Type

/** Returns one condition if it holds, or else none. */
export const conditionIf = (
  condition: boolean,
  code: string,
  text: string
): ReadonlyArray<Condition> => (condition ? [{ code, text }] : [])

/** Number of events that may be queued in a healthy router under load. */
const queueWorthNoting = 1_000
/** An event that waits for longer while none is routed is a problem, ms. */
const stoppedAfterMs = 30_000
/** An event that waits for longer while others are routed is worth a notice, ms. */
const heldAfterMs = 5 * 60_000

/** Says whose events pass a flood, and by which way. */
const bypassText = ({ flooding, from, tenants }: Bypass): string => {
  const whose = flooding.length === 0 ? "one tenant" : flooding.map(plainText).join(", ")
  const others = `${plural(tenants.size, "other tenant")}`
  return from === undefined
    ? `events of ${whose} arrive faster than they are routed: within seconds, those of ${others} will pass them`
    : `events of ${whose} arrive faster than they are routed, and those of ${others} pass them: if this lasts, start another worker, or ask ${whose} to publish more slowly`
}

/** Returns the conditions of events that are not routed, or were lost before. */
export const routingConditions = (survey: Survey): Conditions => {
  const { at, bypass, events, space, writeErrors } = survey
  const { counts, isRouterMissing, lastRoutedAt = 0 } = events
  const [pending, inRouter] = [counts.waitingForRouter ?? 0, counts.inRouter ?? 0]
  // A failed write counts as stored in the stream's state, until the broker is restarted.
  const isUnwritten = writeErrors.some(({ stream }) => stream === space.events.name)
  const lost = isUnwritten ? 0 : counts.lost
  const waitsMs = at - (counts.oldestUnroutedAt ?? at)
  const restsMs = at - lastRoutedAt
  const isStopped = waitsMs > stoppedAfterMs && restsMs > stoppedAfterMs
  const since = lastRoutedAt === 0 ? "" : ` for ${spanText(restsMs)}`
  const waiting = `${plural(pending + inRouter, "event")} ${pending + inRouter === 1 ? "waits" : "wait"} to be routed`
  return {
    problems: [
      ...conditionIf(
        isRouterMissing,
        "router-consumer-missing",
        "the routers' consumer of the event stream was removed, so nothing is routed: a running worker makes it again; without one `petrel init` does"
      ),
      ...conditionIf(
        isStopped,
        "routing-stopped",
        `${waiting}, the oldest for ${spanText(waitsMs)}, and none has been routed${since}: if no other problem says why, look at the logs of the workers with the role \`router\``
      ),
      ...conditionIf(
        lost > 0,
        "events-lost",
        lost >= remadeGap
          ? "the event stream was removed and made again: events that were not routed are lost, and their number is not known. Publish them again"
          : `${plural(lost, "event")} left the event stream before ${lost === 1 ? "it was" : "they were"} routed: removed by hand or by a limit set with another tool, or refused by a full disk and never acknowledged: \`petrel audit\` names ${lost === 1 ? "it" : "them"}`
      )
    ],
    notices: [
      ...conditionIf(
        pending >= queueWorthNoting,
        "router-behind",
        `${plural(pending, "event")} wait to be routed: if their number grows, start another worker`
      ),
      // A bypass stays open for a while after the flood.
      ...(bypass === undefined || bypass.until !== undefined || pending === 0
        ? []
        : [{ code: "flood-passed", text: bypassText(bypass) }]),
      ...conditionIf(
        !isStopped && waitsMs > heldAfterMs,
        "event-held",
        `${waiting}, the oldest for ${spanText(waitsMs)}, while others are routed (${countText(inRouter)} in routers): see \`petrel audit\``
      )
    ]
  }
}

/** Time after the start of a worker within which partitions are assigned, ms. */
const takingOver = 20_000
const partitionsText = (partitions: ReadonlyArray<{ readonly partition: number }>): string =>
  `partition${partitions.length === 1 ? "" : "s"} ${rangesText(partitions.map(({ partition }) => partition))}`

/** Returns the verb of some things. */
export const haveText = (of: ReadonlyArray<unknown>): string => (of.length === 1 ? "has" : "have")

/** True for a partition whose owner answers nothing. */
const isSilent = ({ answers, owner }: PartitionSurvey): boolean => owner !== null && !answers

/** Returns the conditions of partitions without an owner, or whose owner does not answer. */
const partitionConditions = ({ at, partitions, workers = [] }: Survey): Conditions => {
  const delivering = workers.flatMap(({ heartbeat }) =>
    heartbeat?.leaving !== true && heartbeat?.roles.includes("deliver") === true ? [heartbeat] : []
  )
  const unowned = partitions.filter(({ owner }) => owner === null)
  const isStarting = delivering.some(({ startedAt }) => at - startedAt < takingOver)
  const isFresh = ({ unownedSince }: PartitionSurvey) =>
    delivering.length > 0 && (unownedSince == null ? isStarting : at - unownedSince <= defaultTtl)
  const fresh = unowned.filter(isFresh)
  const stale = unowned.filter((partition) => !isFresh(partition))
  const [{ unownedSince } = {}] = stale
  const since = unownedSince == null ? "" : ` for ${spanText(at - unownedSince)}`
  const remedy =
    delivering.length === 0
      ? ": start a worker with `petrel worker`"
      : ": look at the logs of the workers, or start another with `petrel worker`"
  const silent = partitions.filter(isSilent)
  return {
    problems: conditionIf(
      stale.length > 0,
      "partition-without-owner",
      `${partitionsText(stale)} ${haveText(stale)} no owner${since}, so nothing there is delivered${remedy}`
    ),
    notices: [
      ...conditionIf(
        fresh.length > 0,
        "partition-changing-hands",
        `${partitionsText(fresh)} ${haveText(fresh)} no owner yet: a worker takes over within ${spanText(defaultTtl)}`
      ),
      ...[...Map.groupBy(silent, ({ owner }) => owner ?? "")].map(([owner, all]) => ({
        code: "owner-silent",
        text: `worker ${plainText(owner)} has ${partitionsText(all)} and does not answer: it is just taking over, or has died; if this lasts, look at its log`
      }))
    ]
  }
}

/**
 * Returns the conditions of partitions that workers keep from others. An owner that answers nobody has
 * died rather, and has a condition of its own.
 */
const withheldConditions = (
  { partitions }: Survey,
  alive: ReadonlyArray<Heartbeat>
): Conditions["notices"] => {
  const silent = new Set(partitions.filter(isSilent).map(({ partition }) => partition))
  return alive.flatMap(({ id, withheld = [] }) => {
    const kept = withheld.filter(({ partition }) => !silent.has(partition))
    return [...Map.groupBy(kept, ({ owner }) => owner)].map(([owner, all]) => ({
      code: "hand-over-unanswered",
      text: withheldText(id, owner, all)
    }))
  })
}

/** Workers that a condition names. */
const maxNamed = 5

/** Lists the first of some workers. */
const workersText = (all: ReadonlyArray<string>): string => {
  const more = all.length - maxNamed
  return [...all.slice(0, maxNamed), ...(more > 0 ? [`${countText(more)} more`] : [])].join(", ")
}

/** Says which workers' clocks differ from the broker's: those beyond the bound send nothing. */
const clockConditions = (alive: ReadonlyArray<Heartbeat>): Conditions => {
  const namesOf = (state: ClockState) =>
    workersText(
      alive
        .filter(({ clockSkewMs = 0 }) => clockState(clockSkewMs) === state)
        .map(
          ({ clockSkewMs = 0, host, id }) =>
            `${plainText(id)} on ${plainText(host)} (${skewText(clockSkewMs)})`
        )
    )
  const [wrong, off] = [namesOf("wrong"), namesOf("off")]
  const advice = "correct the wrong clock, for example with NTP"
  return {
    problems: conditionIf(
      wrong !== "",
      "clock-wrong",
      `workers whose clocks differ from the broker's by more than ${maxSkewMs / 1_000} s route, send and end nothing, and the deliveries in their partitions wait: ${wrong}; ${advice}`
    ),
    notices: conditionIf(
      off !== "",
      "clock-off",
      `clocks of workers differ from the broker's: ${off}; beyond ${maxSkewMs / 1_000} s a worker sends nothing: ${advice}`
    )
  }
}

/** A worker that is not ready for longer is a problem: it takes its partitions over before, ms. */
const unreadyAfterMs = 60_000

/** Returns the conditions of workers that say themselves that they are not ready. */
const readinessConditions = ({ unready = [] }: Survey): Conditions => {
  const { lasting = [], passing = [] } = Object.groupBy(unready, ({ ms }) =>
    ms > unreadyAfterMs ? "lasting" : "passing"
  )
  const about = (all: typeof lasting, advice: string) =>
    [...Map.groupBy(all, ({ problems }) => problems.join("; "))].map(([reason, those]) => ({
      code: "worker-not-ready",
      text: `${those.length === 1 ? "worker" : "workers"} ${workersText(those.map(({ worker }) => plainText(worker)))} ${haveText(those)} not been ready for ${spanText(Math.max(...those.map(({ ms }) => ms)))}: ${plainText(reason)}${advice}`
    }))
  return {
    problems: about(lasting, ". If no other problem says why, look at the log there"),
    notices: about(passing, "")
  }
}

/** Says why a worker lacks partitions of its share. */
export const withheldText = (
  worker: string,
  owner: string,
  all: ReadonlyArray<{ readonly partition: number }>
): string =>
  `worker ${plainText(worker)} gets no answer when it asks ${plainText(owner)} for ${partitionsText(all)}: either ${plainText(owner)} has just died, and they move within ${spanText(defaultTtl)}; or it runs an older version; or the broker's user of one of them may not use the subjects of hand-overs (nats.conf). While ${plainText(owner)} runs, it delivers there; when it stops, they move`

/** Says what no heartbeat means. */
const noWorkerText = ({ endpoints, unready = [] }: Survey): string => {
  if (unready.length > 0)
    return "no worker is ready, so nothing is delivered: those that run say below what keeps them from it"
  // A worker that has been started sends no heartbeat before it has read the endpoints.
  return (endpoints?.lost ?? 0) > 0
    ? "no worker is ready, so nothing is delivered: workers that were started continue once the endpoints are restored; otherwise start one with `petrel worker`"
    : "no worker is running, so nothing is delivered: start one with `petrel worker`"
}

/** Returns the conditions of the workers and their partitions. */
export const workerConditions = (survey: Survey): Conditions => {
  const { change, workers } = survey
  if (change !== undefined)
    return {
      problems: [
        {
          code: "repartitioning",
          text: `the number of partitions is being changed from ${change.from} to ${change.to}, and nothing is delivered meanwhile; deliveries that are being moved count twice as waiting: wait for \`petrel repartition ${change.to}\`, or run it again if it was interrupted`
        }
      ],
      notices: []
    }
  if (workers === undefined) return { problems: [], notices: [] }
  const alive = workers.flatMap(({ heartbeat }) => (heartbeat === undefined ? [] : [heartbeat]))
  const readiness = readinessConditions(survey)
  if (alive.length === 0)
    return {
      problems: [{ code: "no-worker", text: noWorkerText(survey) }, ...readiness.problems],
      notices: readiness.notices
    }
  const routes = alive.some(({ leaving, roles }) => leaving !== true && roles.includes("router"))
  const { notices, problems } = partitionConditions(survey)
  const clocks = clockConditions(alive)
  return {
    problems: [
      ...problems,
      ...clocks.problems,
      ...readiness.problems,
      ...conditionIf(
        !routes,
        "no-router",
        "no worker routes events: start one with `petrel worker --roles router`"
      )
    ],
    notices: [
      ...notices,
      ...clocks.notices,
      ...readiness.notices,
      ...withheldConditions(survey, alive)
    ]
  }
}
