import { Clock, Effect, HashMap, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { Broker } from "../broker/connection.ts"
import { readLayout } from "../broker/installed.ts"
import { readEndpointNow } from "../delivery/introspection/endpoint-activity.ts"
import { firstRound } from "../domain/delivery.ts"
import { getEndpoint, listEndpoints } from "../endpoints/endpoint-store.ts"
import type { PendingMessage } from "../history/audit/pending-scan.ts"
import { scanFor } from "../history/audit/pending-scan.ts"
import { readDeliveryFacts } from "../history/delivery-facts.ts"
import type { DeliveryLife, Round } from "../history/fold/delivery.ts"
import { attemptsOf, endOf, hasEnded, isLate } from "../history/fold/round.ts"
import { viewOf } from "../history/fold/view.ts"
import { momentText, plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { healthOf } from "../operations/endpoints/current-health.ts"
import type { Hold } from "./delivery-blockers.ts"
import { holdsOf } from "./delivery-blockers.ts"
import { Refused } from "./refused.ts"
import { connected, petrel } from "./root-command.ts"
import { labelled, screenWidth } from "./screen.ts"
import { tenantFlag } from "./selection.ts"
import { print } from "./stdout.ts"

const idArgument = Argument.String("ID").pipe(
  Argument.withDescription("<event id>.<endpoint id>, as the history shows it"),
  Argument.filterMap(
    (text) => {
      const dot = text.lastIndexOf(".")
      return dot <= 0 || dot === text.length - 1
        ? Option.none()
        : Option.some({ text, event: text.slice(0, dot), endpoint: text.slice(dot + 1) })
    },
    () => "must be <event id>.<endpoint id>, such as acme.invoice-42.billing"
  )
)

/** Returns the tenants that have, or had according to the history, an endpoint of this name. */
const tenantsWith = Effect.fnUntraced(function* (endpoint: string) {
  const { ask, jsm, names } = yield* Broker
  const configured = (yield* listEndpoints()).filter((stored) => stored.endpoint.id === endpoint)
  const { state } = yield* ask("look for an endpoint", () =>
    jsm.streams.info(names.history, {
      subjects_filter: names.subjects.fact("*", endpoint, "ok", "*").replace(".ok.*", ".>")
    })
  )
  const told = Object.keys(state.subjects ?? {}).map((subject) => subject.split(".").at(-4) ?? "")
  return [...new Set([...configured.map((stored) => stored.endpoint.tenant), ...told])]
})

/** Reads the rounds of an event for an endpoint from the history. */
const readLife = Effect.fnUntraced(function* (tenant: string, endpoint: string, event: string) {
  const facts = yield* readDeliveryFacts(tenant, endpoint, event)
  const { deliveries } = viewOf(facts.map(({ fact }) => fact))
  return [...HashMap.values(deliveries)].filter((life) => life.endpoint === endpoint)
})

const whereabouts = Effect.fnUntraced(function* (life: DeliveryLife, round: Round) {
  const { endpoint: id, eventAt, eventSeq, tenant } = life
  const { partitions } = yield* readLayout
  const { ask, jsm, names } = yield* Broker
  // Read before the lookup of the delivery: once the router has acknowledged the event, the lookup
  // finds its deliveries.
  const router = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  const isInRouter = round.round === firstRound && eventSeq > router.ack_floor.stream_seq
  let waiter: PendingMessage | undefined
  yield* scanFor([{ tenant, endpoint: id, eventSeq, round: round.round }], partitions, (found) => {
    const isIt = found.eventSeq === eventSeq && found.eventAt === eventAt
    if (isIt && found.round === round.round && found.endpoint === id) waiter = found
  })
  const endpoint = yield* getEndpoint(tenant, id).pipe(
    Effect.map((stored) => stored.endpoint),
    Effect.catchTags({
      EndpointNotFound: () => Effect.undefined,
      EndpointUnreadable: () => Effect.undefined
    })
  )
  const health = endpoint === undefined ? undefined : yield* healthOf(endpoint)
  const activity = yield* readEndpointNow(tenant, id)
  const now = yield* Clock.currentTimeMillis
  return { waiter, holds: holdsOf({ round, waiter, isInRouter, endpoint, health, activity }, now) }
})

interface Shown {
  readonly round: Round
  readonly waiter?: PendingMessage | undefined
  readonly holds?: ReadonlyArray<Hold>
}

const roundJson = ({ holds, round, waiter }: Shown): object => {
  const { attempts, begun, discardedAt, end, repeats, state, waits } = round
  return {
    round: round.round,
    begun: begun ?? null,
    attempts,
    state: endOf(state) === "none" ? "open" : endOf(state),
    ...(end === undefined ? {} : { end }),
    ...(discardedAt === undefined ? {} : { discardedAt }),
    ...(waits === undefined ? {} : { waits }),
    repeats,
    ...(holds === undefined
      ? {}
      : {
          waitsIn:
            waiter === undefined
              ? null
              : { stream: waiter.stream, seq: waiter.seq, deadline: waiter.deadline ?? null },
          holds
        })
  }
}

const beginnings = { routed: "routed", redelivered: "sent again", replayed: "replayed" } as const

/** Explains why a delivered round may have a dead letter. */
const lateLine = (dead: number | undefined): string =>
  `  Delivered late: recorded by a worker that did not own the partition any more.${dead === undefined ? "" : ` It resolves dead letter ${dead}.`}`

const roundLines = ({ holds, round, waiter }: Shown, now: number): ReadonlyArray<string> => {
  const width = screenWidth()
  const { attempts, begun, discardedAt, end, repeats, state } = round
  const at = (time: number) => momentText(time, now)
  const line = (time: number, text: string) =>
    labelled(`  ${at(time)}  `, plainText(text), width).join("\n")
  const deadline = begun?.deadline ?? waiter?.deadline
  return [
    ...(begun === undefined
      ? ["  What began it is not in the history any more."]
      : [line(begun.at, beginnings[begun.by])]),
    ...attempts.map(({ at, durationMs, error, isSuccess, nextAttemptAt, number, status }) =>
      line(
        at,
        [
          `#${number}`,
          ...(status === undefined ? [] : [String(status)]),
          ...(error === undefined ? [] : [`${error.class}: ${error.message}`]),
          ...(durationMs === undefined ? [] : [spanText(durationMs)]),
          isSuccess
            ? "delivered"
            : nextAttemptAt === undefined
              ? "no further attempt"
              : `next at ${momentText(nextAttemptAt, now)}`
        ].join("  ")
      )
    ),
    ...(isLate(state) ? [lateLine(end?.dead)] : []),
    ...(end !== undefined && endOf(state) !== "delivered"
      ? [
          line(
            end.at,
            `dead-lettered: ${end.reason} after ${attemptsOf(state)} attempts${end.dead === undefined ? "" : `; petrel dead show ${end.dead}`}`
          )
        ]
      : []),
    ...(discardedAt === undefined ? [] : [line(discardedAt, "discarded")]),
    ...(repeats === 0 ? [] : [`  ${repeats} facts tell again what was told before.`]),
    ...(holds ?? []).flatMap(({ freedBy, says }) => [
      ...labelled("  waits    ", plainText(says), width),
      ...labelled("           freed by: ", plainText(freedBy), width)
    ]),
    ...(waiter === undefined ? [] : [`  in       message ${waiter.seq} of ${waiter.stream}`]),
    ...(hasEnded(state) || deadline === undefined ? [] : [`  given up at ${at(deadline)}`])
  ]
}

const findLife = Effect.fnUntraced(function* (
  {
    endpoint,
    event,
    text
  }: { readonly text: string; readonly event: string; readonly endpoint: string },
  tenant: string | undefined
) {
  const tenants = tenant === undefined ? yield* tenantsWith(endpoint) : [tenant]
  const lives = (yield* Effect.forEach(tenants, (one) => readLife(one, endpoint, event))).flat()
  const [life, ...others] = lives
  if (life === undefined)
    return yield* new Refused({
      message: `the history tells of no delivery ${text} (of one whose event has just been published within a second or two): its id is <event id>.<endpoint id>, as \`petrel history --event ID\` shows it`
    })
  if (others.length > 0 && others.some((other) => other.tenant !== life.tenant))
    return yield* new Refused({
      message: `there is more than one delivery ${text}: say whose with --tenant (${[...new Set(lives.map((one) => one.tenant))].join(", ")})`
    })
  return lives.at(-1) ?? life
})

/** Shows the rounds of one delivery, and what blocks it. */
export const deliveryShow = Command.make(
  "show",
  { id: idArgument, tenant: tenantFlag },
  Effect.fnUntraced(function* ({ id, tenant }) {
    const { json } = yield* petrel
    const { life, rounds } = yield* Effect.gen(function* () {
      const life = yield* findLife(id, tenant)
      const rounds = yield* Effect.forEach(life.rounds, (round) =>
        hasEnded(round.state)
          ? Effect.succeed<Shown>({ round })
          : Effect.map(whereabouts(life, round), (found): Shown => ({ round, ...found }))
      )
      return { life, rounds }
    }).pipe(Effect.provide(connected))
    const { endpoint, event, eventSeq, type } = life
    if (json)
      return yield* print(
        JSON.stringify({
          ...{ delivery: id.text, tenant: life.tenant, endpoint, event, eventSeq, type },
          rounds: rounds.map(roundJson)
        })
      )
    const now = yield* Clock.currentTimeMillis
    yield* print(`${plainText(event ?? `event ${eventSeq}`)} → ${life.tenant}/${endpoint}`)
    for (const shown of rounds) {
      if (rounds.length > 1) yield* print(`round ${shown.round.round}`)
      yield* Effect.forEach(roundLines(shown, now), print, { discard: true })
    }
  })
).pipe(Command.withDescription("Show the life of one delivery, and what it waits for"))
