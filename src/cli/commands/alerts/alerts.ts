import type { Msg } from "@nats-io/transport-node"
import { Clock, Effect, Option, Queue, Result, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { Broker } from "../../../broker/broker.ts"
import { streamNotFound } from "../../../broker/broker-error.ts"
import { SystemAlertSettings, TenantAlertSettings } from "../../../domain/alert.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { isToken } from "../../../domain/token.ts"
import { parseFact } from "../../../history/read.ts"
import {
  hasOperational,
  listRaisedAlerts,
  RaisedAlertView,
  raisedSubject,
  setSystemThresholds,
  setTenantThresholds,
  showThresholds,
  TestAlert,
  type ThresholdsView,
  testAlert
} from "../../../operations/alerts/alerts.ts"
import { alertDetails, alertText } from "../../../text/alert-text.ts"
import { plainText } from "../../../text/plain-text.ts"
import { localTime } from "../../../text/quantities.ts"
import { readAlertChoice } from "../../flags/setting-flags.ts"
import { byFlag, isSet, tenantFlag, textFlag } from "../../flags/shared.ts"
import { cutTo, makeTable, screenWidth } from "../../format/screen.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { reportFact } from "../history/history.ts"

const encodeRaised = jsonOf(RaisedAlertView)

const headings = ["about", "since", "level", "alert", "what"]

/** Lists the alerts that are raised. */
const list = Command.make(
  "list",
  { tenant: tenantFlag },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const found = yield* listRaisedAlerts(tenant).pipe(Effect.provide(connected))
    if (json)
      return yield* Effect.forEach(found, (one) => print(JSON.stringify(encodeRaised(one))), {
        discard: true
      })
    if (found.length === 0) return yield* remark("No alert is raised.")
    const now = yield* Clock.currentTimeMillis
    const rows = found.map((one) => [
      raisedSubject(one),
      localTime(one.raisedAt, now),
      one.level,
      one.name,
      plainText([alertText(one), ...alertDetails(one)].join("; "))
    ])
    const width = screenWidth()
    for (const line of makeTable(headings).lines(rows)) yield* print(cutTo(width, line))
  })
).pipe(Command.withDescription("List the alerts that are raised now"))

/** The tenant that a command about alerts is for; undefined for the system. */
const tenantArgument = Argument.String("TENANT").pipe(
  Argument.withDescription(
    "Those of this tenant and its endpoints; without it those of all tenants and the system"
  ),
  Argument.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  ),
  Argument.optional,
  Argument.map(Option.getOrUndefined)
)

/** Says that nobody gets a tenant's alerts. */
const noneGets = (tenant: string): string =>
  `No endpoint of ${tenant} gets them: add one with \`petrel endpoint add ${tenant}/ops --operational --url URL\``

/** @param isHeard whether any endpoint gets the alerts about the system, where a tenant is to get them. */
const viewText = (view: ThresholdsView, isHeard: boolean): string => {
  const { contact, off, set, systemAlertsTo, tenant, thresholds } = view
  const own = new Set(set)
  const names = Object.keys(thresholds)
  const width = Math.max(...names.map((name) => name.length))
  const source = (name: string) => (off === true || own.has(name) ? "  (set)" : "")
  return [
    `Alerts about ${tenant === undefined ? "the system, and all tenants and endpoints that have no thresholds of their own" : `${tenant} and its endpoints that have none of their own`}:`,
    ...names.map((name) => `  ${name.padEnd(width)}  ${thresholds[name]}${source(name)}`),
    ...(systemAlertsTo === undefined
      ? []
      : [`  ${"systemAlertsTo".padEnd(width)}  ${systemAlertsTo}  (set)`]),
    ...(contact === undefined
      ? []
      : [`  ${"contact".padEnd(width)}  ${plainText(contact)}  (set)`]),
    ...(systemAlertsTo === undefined || isHeard ? [] : [noneGets(systemAlertsTo)])
  ].join("\n")
}

type ThresholdChange = "off" | SystemAlertSettings | TenantAlertSettings

/** Parses the value of --set. */
const readChoice = (
  set: string,
  tenant: string | undefined
): Result.Result<ThresholdChange, ReadonlyArray<string>> =>
  tenant === undefined
    ? readAlertChoice("set", set, SystemAlertSettings)
    : readAlertChoice("set", set, TenantAlertSettings)

/** Shows and changes the thresholds of alerts. */
const thresholds = Command.make(
  "thresholds",
  {
    tenant: tenantArgument,
    set: textFlag(
      "set",
      "JSON",
      `New thresholds, which replace all that were set, such as '{"successWarnPercent":98,"window":"30 minutes"}'; for a tenant also off, and "contact": whom to notify; for the system "systemAlertsTo": the tenant whose operational endpoints get its alerts`
    ),
    unset: isSet("unset", "Remove them: those of the next level apply again"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, set, tenant, unset }) {
    if (set !== undefined && unset) return yield* refusal(["--set and --unset cannot be combined"])
    const read = set === undefined ? undefined : readChoice(set, tenant)
    if (read !== undefined && Result.isFailure(read)) return yield* refusal(read.failure)
    const choice = read?.success
    const isChange = choice !== undefined || unset
    if (tenant === undefined && choice === "off")
      return yield* refusal([
        `--set off is for a tenant or an endpoint: for the system say which alerts, such as '{"waitingGrowth":"off"}'`
      ])
    const work = Effect.suspend(() => {
      if (!isChange) return showThresholds(tenant)
      if (tenant !== undefined) return setTenantThresholds(tenant, choice, by)
      return setSystemThresholds(choice === "off" ? undefined : choice, by)
    })
    const [view, isHeard] = yield* Effect.gen(function* () {
      const view = yield* work
      const { systemAlertsTo: to } = view
      return [view, to === undefined || (yield* hasOperational(to))] as const
    }).pipe(Effect.provide(connected))
    yield* report(view, viewText(view, isHeard))
  })
).pipe(
  Command.withDescription("Show when alerts are raised, or change it"),
  Command.withExamples([
    { command: "petrel alerts thresholds", description: "Those of all" },
    { command: `petrel alerts thresholds acme --set '{"successWarnPercent":98}'` }
  ])
)

const encode = jsonOf(TestAlert)

const endpointsText = ({ endpoints, event, tenant }: TestAlert): ReadonlyArray<string> => {
  if (tenant === undefined)
    return [
      `No endpoint gets alerts about the system: name a tenant whose operational endpoints do, with \`petrel alerts thresholds --set '{"systemAlertsTo":"TENANT"}'\``
    ]
  if (endpoints.length === 0) return [noneGets(tenant)]
  return [
    ...endpoints.map(
      ({ held, id }) =>
        `Endpoint ${tenant}/${id}${held === undefined ? " gets it" : ` wants it and is ${held}`}`
    ),
    `What became of it: \`petrel delivery show ${event}.${endpoints[0]?.id ?? ""}\``
  ]
}

/** Sends a test alert. */
const test = Command.make(
  "test",
  { tenant: tenantArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, tenant }) {
    const sent = yield* testAlert(tenant, by).pipe(Effect.provide(connected))
    const text = [
      `Sent a test alert about ${tenant ?? "the system"}, ${sent.alert.id}`,
      `Subject ${sent.subject}: every listener has it`,
      ...endpointsText(sent)
    ]
    yield* report(encode(sent), text.join("\n"))
  })
).pipe(
  Command.withDescription("Send a test alert to all who get alerts about a tenant or the system"),
  Command.withExamples([
    { command: "petrel alerts test", description: "About the system" },
    { command: "petrel alerts test acme" }
  ])
)

/**
 * The failures that the broker republishes. Failures while no command listens are only in the
 * history.
 */
const failures = (tenant: string | undefined) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { flush, listen, names, streamInfo } = yield* Broker
      // A user who may only subscribe may not query JetStream. Any answer except "stream not found"
      // is accepted.
      yield* streamInfo(`read ${names.history}`, names.history).pipe(
        Effect.catchIf(
          ({ code }) => code !== streamNotFound,
          () => Effect.void
        )
      )
      const subject = names.subjects.failures(tenant ?? "*", "*", "*")
      const heard = yield* Queue.unbounded<Msg>()
      yield* Effect.acquireRelease(
        Effect.sync(() => listen(subject, (message) => Queue.offerUnsafe(heard, message))),
        (unlisten) => Effect.sync(unlisten)
      )
      yield* flush
      const { json } = yield* petrel
      if (!json) yield* remark(`Listening on ${subject} for failures; Ctrl-C ends it.`)
      return Stream.fromQueue(heard)
    })
  )

const reportFailure = (message: Msg) =>
  Option.match(parseFact(message.string(), Number(message.headers?.get("Nats-Sequence"))), {
    onNone: () => Effect.logWarning("an alert is no fact", { subject: message.subject }),
    onSome: reportFact
  })

/** Shows the failure subjects as they are published. */
export const alerts = Command.make("alerts", { tenant: tenantFlag }, ({ tenant }) =>
  failures(tenant).pipe(Stream.runForEach(reportFailure), Effect.provide(connected), untilStopped)
).pipe(
  Command.withDescription("Show failures as they happen, until it is stopped"),
  Command.withShortDescription("Show failures as they happen, and which alerts are raised"),
  Command.withSubcommands([list, test, thresholds])
)
