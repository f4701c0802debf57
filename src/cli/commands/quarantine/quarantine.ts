import { Clock, Effect, Option, Result } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import { maxQuarantined } from "../../../broker/topology.ts"
import { typeWithin } from "../../../domain/intake.ts"
import { present } from "../../../domain/record.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { isToken } from "../../../domain/token.ts"
import { type QuarantineReason, quarantineReasons } from "../../../intake/quarantine.ts"
import { readInput } from "../../../operations/input.ts"
import { wholeNumber } from "../../../operations/parameters.ts"
import {
  chooseQuarantined,
  DiscardedSeveral,
  discard as discardOne,
  discardSeveral,
  listQuarantined,
  QuarantineChoice,
  QuarantinedView,
  type Released,
  type ReleasedSeveral,
  release as releaseOne,
  releaseSeveral,
  showQuarantined
} from "../../../operations/sources/manage-quarantine.ts"
import { bytesText, localTime, plural } from "../../../text/quantities.ts"
import { flagProblems } from "../../flags/flag-problems.ts"
import { byFlag, isSet, textFlag } from "../../flags/shared.ts"
import { makeTable } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { canAsk, print, remark } from "../../terminal/stdout.ts"

const encodeView = jsonOf(QuarantinedView)
const encodeDiscarded = jsonOf(DiscardedSeveral)

const tenantArgument = Argument.String("TENANT").pipe(
  Argument.withDescription("Such as acme"),
  Argument.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  )
)

const numberArgument = Argument.String("NUMBER").pipe(
  Argument.withDescription("As `petrel quarantine list` shows it"),
  Argument.withSchema(wholeNumber())
)

const headings = ["number", "source", "reason", "came", "bytes", "problem"]

const list = Command.make(
  "list",
  { tenant: tenantArgument },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const found = yield* Effect.provide(listQuarantined(tenant), connected)
    if (json) {
      for (const one of found) yield* print(JSON.stringify(encodeView(one)))
      return
    }
    if (found.length === 0) return yield* remark(`Nothing of ${tenant} is in quarantine.`)
    const now = yield* Clock.currentTimeMillis
    const rows = found.map((one) => [
      String(one.number),
      one.source,
      one.reason,
      localTime(one.at, now),
      String(one.bytes),
      one.problem
    ])
    yield* Effect.forEach(makeTable(headings).lines(rows), print)
  })
).pipe(
  Command.withDescription("List the requests of a tenant that are in quarantine, oldest first")
)

const show = Command.make(
  "show",
  { tenant: tenantArgument, number: numberArgument },
  Effect.fnUntraced(function* ({ number, tenant }) {
    const one = yield* Effect.provide(showQuarantined(tenant, number), connected)
    const now = yield* Clock.currentTimeMillis
    const rows = [
      ["source", one.source],
      ["reason", `${one.reason}: ${one.problem}`],
      ["came", `${localTime(one.at, now)}, ${bytesText(one.bytes)}`],
      ...(one.event === undefined ? [] : [["id", one.event]]),
      ...(one.type === undefined ? [] : [["type", one.type]]),
      ...Object.entries(one.headers ?? {})
    ].map(([name = "", text]) => `  ${name.padEnd(18)}  ${text}`)
    yield* report(
      encodeView(one),
      [
        `${number} of ${tenant}`,
        ...rows,
        "",
        Buffer.from(one.body ?? "", "base64").toString("utf8")
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Show a request in quarantine, and its bytes"))

const choiceFlags = {
  numbers: Argument.String("NUMBER").pipe(
    Argument.withDescription("As `petrel quarantine list` shows it; several may be given"),
    Argument.withSchema(wholeNumber()),
    Argument.variadic({ max: maxQuarantined })
  ),
  source: textFlag("source", "ID", "Only those of this source, such as stripe"),
  reason: Flag.Literals("reason", quarantineReasons).pipe(
    Flag.withDescription("Only those that are there for this reason"),
    Flag.optional
  ),
  all: isSet("all", "All of it")
}

/** Returns which are meant. Fails where none is, or the flags contradict each other. */
const choiceOf = (given: {
  readonly all: boolean
  readonly numbers: ReadonlyArray<number>
  readonly reason: Option.Option<QuarantineReason>
  readonly source: string | undefined
}): Effect.Effect<QuarantineChoice, Refused> => {
  const { all, numbers, reason, source } = given
  const choice = present({
    number: numbers.length === 0 ? undefined : numbers,
    source,
    reason: Option.getOrUndefined(reason)
  })
  const isNarrowed = Object.keys(choice).length > 0
  if (all === isNarrowed)
    return refusal([
      all
        ? "--all cannot be combined with numbers, --source or --reason: it selects everything"
        : "name them by their numbers, or say --source, --reason or --all"
    ])
  const read = readInput(QuarantineChoice, all ? { all } : choice)
  return Result.isFailure(read) ? refusal(flagProblems(read.failure)) : Effect.succeed(read.success)
}

/** The one that is named alone: what is wrong with it is an error. */
const onlyNumber = ({ number = [], reason, source }: QuarantineChoice): number | undefined =>
  number.length === 1 && source === undefined && reason === undefined ? number[0] : undefined

const releasedText = ({ events, number, source }: Released): string => {
  const [first] = events
  return `${number} is ${plural(events.length, "event")} now${first === undefined ? "" : `: ${source}.${typeWithin({ source, type: first.type })}`}`
}

/** Says what stays in quarantine. Fails if anything does. */
const reportLeft = Effect.fnUntraced(function* (left: ReleasedSeveral["left"]) {
  if (left.length === 0) return
  const texts = left.map(({ number, problem }) =>
    problem.startsWith(`${number}`) ? problem : `${number}: ${problem}`
  )
  return yield* new Refused({
    message: `${left.length} left as ${left.length === 1 ? "it is" : "they are"}: ${texts.join("; ")}`
  })
})

const release = Command.make(
  "release",
  {
    ...{ tenant: tenantArgument, ...choiceFlags },
    type: textFlag("type", "TYPE", "The event's type (default: what its provider says)"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, tenant, type, ...given }) {
    const choice = yield* choiceOf(given)
    const one = onlyNumber(choice)
    if (one !== undefined) {
      const released = yield* Effect.provide(releaseOne(tenant, one, type, by), connected)
      return yield* report(released, releasedText(released))
    }
    const done = yield* Effect.provide(releaseSeveral(tenant, choice, type, by), connected)
    yield* report(
      done,
      [...done.released.map(releasedText), `${done.released.length} released`].join("\n")
    )
    yield* reportLeft(done.left)
  })
).pipe(
  Command.withDescription("Make requests in quarantine events"),
  Command.withExamples([
    { command: "petrel quarantine release acme 17" },
    { command: "petrel quarantine release acme 17 18 --type invoice.paid" },
    { command: "petrel quarantine release acme --source stripe --reason id-collision" }
  ])
)

/**
 * Asks whether what is chosen by a filter, and not by name, is to be discarded. Returns exactly what
 * was agreed to, as more may have come in meanwhile; undefined if it was not.
 */
const agreed = Effect.fnUntraced(function* (tenant: string, choice: QuarantineChoice) {
  const { chosen } = yield* chooseQuarantined(tenant, choice)
  if (chosen.length === 0) return choice
  const isAgreed = yield* Prompt.run(
    Prompt.Confirm({ message: `Discard ${chosen.length} of ${tenant} for good?` })
  )
  return isAgreed ? { number: chosen.map(({ number }) => number) } : undefined
})

const discard = Command.make(
  "discard",
  {
    ...{ tenant: tenantArgument, ...choiceFlags, by: byFlag },
    yes: isSet("yes", "Do not ask if no number is given")
  },
  Effect.fnUntraced(function* ({ by, tenant, yes, ...given }) {
    const { json } = yield* petrel
    const choice = yield* choiceOf(given)
    const one = onlyNumber(choice)
    if (one !== undefined) {
      const discarded = yield* Effect.provide(discardOne(tenant, one, by), connected)
      return yield* report(encodeView(discarded), `${one} of ${tenant} is discarded`)
    }
    const asks = !yes && choice.number === undefined
    if (asks && (json || !(yield* canAsk)))
      return yield* new Refused({
        message:
          "discarded requests do not come again: add --yes to discard them without a question"
      })
    yield* Effect.gen(function* () {
      const meant = asks ? yield* agreed(tenant, choice) : choice
      if (meant === undefined) return yield* remark("nothing was discarded")
      const done = yield* discardSeveral(tenant, meant, by)
      yield* report(encodeDiscarded(done), `${done.discarded.length} of ${tenant} discarded`)
      yield* reportLeft(done.left)
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription("Remove requests from quarantine for good"),
  Command.withExamples([
    { command: "petrel quarantine discard acme 17 18" },
    { command: "petrel quarantine discard acme --source stripe --reason unreadable --yes" }
  ])
)

export const quarantine = Command.make("quarantine").pipe(
  Command.withDescription(
    "Requests that came in and could not become events: unreadable, or with the id of another event"
  ),
  Command.withSubcommands([list, show, release, discard])
)
