import { circuitOf, type Endpoint } from "../../../domain/endpoint.ts"
import { clockState, skewText } from "../../../policy/clock-skew.ts"
import { nearestName } from "../../../policy/nearest-name.ts"
import { rateText } from "../../../policy/rate.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, plural, zonedTime } from "../../../text/quantities.ts"
import { type Check, type Findings, somethingWaits, type TypeCount } from "./findings.ts"

const nameOf = ({ id, tenant }: Endpoint): string => `${tenant}/${id}`

const stateCheck = ({ endpoint }: Findings, now: number): Check => {
  const { disabled, paused, suspended } = endpoint
  const name = nameOf(endpoint)
  if (disabled !== undefined)
    return {
      name: "state",
      result: "problem",
      says: `disabled since ${zonedTime(disabled.at, now)}, ${plainText(disabled.reason)}: it gets no events`,
      advice: `Once its receiver is well, enable it (\`petrel endpoint enable ${name}\`). Events that it missed can be sent again (\`petrel dead redeliver\` and \`petrel replay\`).`
    }
  if (suspended !== undefined)
    return {
      name: "state",
      result: "problem",
      says: `suspended since ${zonedTime(suspended.at, now)}, ${plainText(suspended.reason)}: its deliveries wait until their deadlines`,
      advice: `Once its receiver is well, resume it (\`petrel endpoint resume ${name}\`).`
    }
  if (paused !== undefined)
    return {
      name: "state",
      result: "warning",
      says: `paused by ${plainText(paused.by)} since ${zonedTime(paused.at, now)}${paused.reason === undefined ? "" : ` (${plainText(paused.reason)})`}: its deliveries wait`,
      advice: `Resume it when the reason no longer applies (\`petrel endpoint resume ${name}\`).`
    }
  return { name: "state", result: "ok", says: "enabled" }
}

const workerCheck = ({ activity: { answer, owner, partition } }: Findings): Check => {
  if (owner === undefined)
    return {
      name: "worker",
      result: "problem",
      says: `no worker owns partition ${partition}, where its deliveries wait`,
      advice:
        "Start a worker (`petrel worker`), or see what the running ones do (`petrel workers`)."
    }
  if (answer === undefined)
    return {
      name: "worker",
      result: "unknown",
      says: `${plainText(owner)} owns partition ${partition} and does not answer now`,
      advice: `Try again in a few seconds; if it still does not answer, look at the log of ${plainText(owner)}.`
    }
  const { clockSkewMs = 0 } = answer
  if (clockState(clockSkewMs) === "wrong")
    return {
      name: "worker",
      result: "problem",
      says: `${plainText(owner)} owns partition ${partition} and sends nothing: its clock is ${skewText(clockSkewMs)}`,
      advice: `Correct the clock of ${plainText(owner)}'s machine, for example with NTP, or stop that worker.`
    }
  return {
    name: "worker",
    result: "ok",
    says: `${plainText(owner)} owns partition ${partition} and answers`
  }
}

const circuitCheck = (findings: Findings, now: number): Check => {
  const { endpoint, health } = findings
  const { since, state, until = now, why } = health.circuit
  if (state === "closed") return { name: "circuit", result: "ok", says: "closed" }
  const next = Math.max(until, health.notBefore ?? 0)
  const probe = next > now ? `at ${zonedTime(next, now)}` : "with the next delivery"
  const { successes } = circuitOf(endpoint)
  // Without a delivery there is no probe, whoever asks for one.
  const sooner = somethingWaits(findings)
    ? `Once its receiver is well, do not wait for the probe, try now (\`petrel endpoint retry-now ${nameOf(endpoint)}\`). `
    : ""
  return {
    name: "circuit",
    result: "warning",
    says: `${state} since ${zonedTime(since, now)}${why === undefined ? "" : ` (${plainText(why)})`}: only probes are sent, the next one ${probe}`,
    advice: `${sooner}${plural(successes, "probe")} in a row that ${successes === 1 ? "succeeds closes" : "succeed close"} the circuit.`
  }
}

const waitingCheck = (
  { activity: { answer, waiting }, endpoint, health }: Findings,
  now: number
): Check => {
  const { backlog, queue, schedules } = waiting
  // What comes directly from events is in the owner's memory alone.
  const held = (answer?.inFlight ?? 0) + (answer?.inLine ?? 0)
  const sum = Math.max(backlog + queue + (schedules ?? 0), held)
  const says =
    schedules === undefined
      ? `more than ${countText(sum)} deliveries wait`
      : `${plural(sum, "delivery waits", "deliveries wait")}`
  const { maxInFlight, paused, rate, suspended } = endpoint
  const { circuit, notBefore = 0 } = health
  const isStopped = paused !== undefined || suspended !== undefined || circuit.state !== "closed"
  if (sum > 0 && !isStopped && notBefore > now)
    return {
      name: "waiting",
      result: "warning",
      says: `${says} until ${zonedTime(notBefore, now)}, because the receiver asked for it (Retry-After)`,
      advice: `Once its receiver is well, do not wait for that, try now (\`petrel endpoint retry-now ${nameOf(endpoint)} --ignore-retry-after\`).`
    }
  const mayGo = answer !== undefined && !isStopped && notBefore <= now
  const isFull = answer !== undefined && answer.inFlight >= maxInFlight
  if (backlog === 0 || !mayGo || (!isFull && rate === undefined))
    return { name: "waiting", result: "ok", says: sum === 0 ? "nothing waits" : says }
  if (!isFull && rate !== undefined)
    return {
      name: "waiting",
      result: "warning",
      says: `${says}, and the endpoint's own rate allows ${rateText(rate)}`,
      advice: `If its receiver can take more, raise the rate (\`petrel endpoint set ${nameOf(endpoint)} --rate\`).`
    }
  return {
    name: "waiting",
    result: "warning",
    says: `${says}, and ${maxInFlight === 1 ? "the one request that it may have at once is" : `all ${countText(maxInFlight)} requests that it may have at once are`} in flight`,
    advice: `If its receiver can take more at once, raise the cap (\`petrel endpoint set ${nameOf(endpoint)} --max-in-flight ${maxInFlight * 2}\`).`
  }
}

/** Checks what Petrel itself knows of an endpoint's state. */
export const stateChecks = (findings: Findings, now: number): ReadonlyArray<Check> => [
  stateCheck(findings, now),
  workerCheck(findings)
]

const deadLettersCheck = ({ deadLetters, endpoint }: Findings): ReadonlyArray<Check> => {
  if (deadLetters === 0) return []
  const name = nameOf(endpoint)
  return [
    {
      name: "dead letters",
      result: "warning",
      says: `${plural(deadLetters, "dead letter")} of the endpoint ${deadLetters === 1 ? "is" : "are"} kept, including those that were sent again`,
      advice: `See why they ended (\`petrel dead list --endpoint ${name}\`), and send them again once it works (\`petrel dead redeliver --endpoint ${name}\`).`
    }
  ]
}

/** Checks what holds deliveries back that could be sent, and what has ended without success. */
export const holdChecks = (findings: Findings, now: number): ReadonlyArray<Check> => [
  circuitCheck(findings, now),
  waitingCheck(findings, now),
  ...deadLettersCheck(findings)
]

/** Types that are named in the text. */
const maxNamed = 3

const listed = (types: ReadonlyArray<TypeCount>): string =>
  types
    .toSorted((one, other) => other.count - one.count)
    .slice(0, maxNamed)
    .map(({ count, type }) => `${plainText(type)} (${countText(count)})`)
    .join(", ")

/** Returns a published type that a filter may have meant. */
const meant = (filters: ReadonlyArray<string>, types: ReadonlyArray<TypeCount>) => {
  const published = types.map(({ type }) => type)
  for (const filter of filters) {
    const wanted = filter.replace(/\.[*>]$/, "")
    const near =
      nearestName(wanted, published) ??
      published.find((type) => nearestName(wanted, [type.split(".")[0] ?? type]) !== undefined)
    if (near !== undefined) return { filter, near }
  }
  return undefined
}

/** Checks whether the tenant publishes anything that the endpoint's filters match. */
export const subscriptionCheck = (
  { endpoint: { id, tenant, types: filters }, subscription: { matchedAt, types } }: Findings,
  now: number
): Check => {
  const matching = types.filter(({ isMatched }) => isMatched)
  const sum = matching.reduce((all, { count }) => all + count, 0)
  const wanted = filters.length === 1 && filters[0] === ">" ? "all types" : filters.join(", ")
  if (types.length === 0)
    return {
      name: "events",
      result: "warning",
      says: `the event stream holds no event of ${tenant}`,
      advice: `Publish one (\`petrel publish ${tenant} TYPE\`). If you do publish, check the subject: it must be events.${tenant}.<type>.`
    }
  if (matching.length > 0)
    return {
      name: "events",
      result: "ok",
      says: `${plural(sum, "stored event")} of ${tenant} ${sum === 1 ? "matches" : "match"} ${wanted}${matchedAt === undefined ? "" : `, the latest from ${zonedTime(matchedAt, now)}`}`
    }
  const near = meant(filters, types)
  return {
    name: "events",
    result: "problem",
    says: `none of the ${plural(types.length, "stored event type")} of ${tenant} matches ${wanted}; published are ${listed(types)}`,
    advice:
      near === undefined
        ? `Subscribe it to what is published (\`petrel endpoint set ${tenant}/${id} --types '${types[0]?.type ?? ">"}'\`).`
        : `Did ${near.filter} mean ${plainText(near.near)}? Then set its \`types\` (\`petrel endpoint set ${tenant}/${id} --types TYPES\`).`
  }
}
