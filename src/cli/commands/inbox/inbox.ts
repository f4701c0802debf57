import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Entry, type EntryState, entryStates } from "../../../receiver/entry.ts"
import { plainText, textOf } from "../../../text/plain-text.ts"
import { bytesText, localTime, plural } from "../../../text/quantities.ts"
import { byFlag, isSet, maybe, nameFlag, textFlag } from "../../flags/shared.ts"
import { labelled, makeTable, screenWidth } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { asked, databaseFlag, openQueue, openStore, statementsFor, tableFlag } from "./database.ts"

const where = { database: databaseFlag, table: tableFlag }

const sourceFlag = textFlag("source", "SOURCE", "Only of this source")

const stateFlag = (description: string) =>
  maybe(
    nameFlag("state", entryStates).pipe(
      Flag.withMetavar("STATE"),
      Flag.withDescription(`${description}: ${entryStates.join(", ")}`)
    )
  )

const time = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

/** An event as JSON. Its body is text, or base64 where it is not. */
const entryJson = (entry: Entry): object => {
  const { at, body, finishedAt, nextAt, receivedAt, startedAt, keepMs: _, headers, ...rest } = entry
  const text = body === undefined ? undefined : textOf(body)
  return {
    ...rest,
    at: time(at),
    receivedAt: time(receivedAt),
    startedAt: time(startedAt),
    finishedAt: time(finishedAt),
    nextAt: entry.state === "received" ? time(nextAt) : undefined,
    headers,
    ...(body === undefined
      ? {}
      : text === undefined
        ? { bodyBase64: Buffer.from(body).toString("base64") }
        : { body: text })
  }
}

const headings = ["id", "state", "source", "type", "key", "attempts", "received", "error"]

const rowOf =
  (now: number) =>
  (entry: Entry): ReadonlyArray<string> => [
    entry.id,
    entry.state,
    plainText(entry.source),
    plainText(entry.type ?? "-"),
    plainText(entry.key),
    `${entry.attempts}`,
    localTime(entry.receivedAt, now),
    plainText(entry.error ?? "-")
  ]

/** What waits for a person is listed, unless another state is asked for. */
const usualStates: ReadonlyArray<EntryState> = ["dead", "quarantined"]

const list = Command.make(
  "list",
  {
    ...where,
    state: stateFlag("Only those in this state (default: dead and quarantined)"),
    source: sourceFlag,
    limit: Flag.Int("limit").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("At most N, the newest first (default: 50)"),
      Flag.withDefault(50),
      Flag.filter(
        (limit) => limit >= 1 && limit <= 10_000,
        () => "must be a whole number from 1 to 10,000"
      )
    )
  },
  Effect.fnUntraced(function* ({ database, limit, source, state, table }) {
    const { json } = yield* petrel
    const queue = yield* openQueue(database, table)
    const states = state === undefined ? usualStates : [state]
    const found = yield* asked(async () => {
      const lists = await Promise.all(
        states.map((one) => queue.list({ state: one, source, limit }))
      )
      return lists
        .flat()
        .sort((a, b) => Number(b.id) - Number(a.id))
        .slice(0, limit)
    })
    if (json) {
      for (const entry of found) yield* print(JSON.stringify(entryJson(entry)))
      return
    }
    if (found.length === 0) return yield* remark(`No event of the inbox is ${states.join(" or ")}.`)
    const now = yield* Clock.currentTimeMillis
    yield* Effect.forEach(makeTable(headings).lines(found.map(rowOf(now))), print)
  }, Effect.scoped)
).pipe(
  Command.withDescription("List events that an inbox has, without their bodies"),
  Command.withExamples([
    { command: "petrel inbox list --database postgres://127.0.0.1/shop" },
    { command: "petrel inbox list --database sqlite:shop.db --state received --source stripe" }
  ])
)

const isId = (text: string): boolean => /^\d{1,18}$/.test(text)
const idExpected = "must be an id as `petrel inbox list` shows it, such as 17"

const idArgument = Argument.String("ID").pipe(
  Argument.withDescription("As `petrel inbox list` shows it"),
  Argument.filterMap(
    (text) => (isId(text) ? Option.some(text) : Option.none()),
    () => idExpected
  )
)

const show = Command.make(
  "show",
  { ...where, id: idArgument },
  Effect.fnUntraced(function* ({ database, id, table }) {
    const queue = yield* openQueue(database, table)
    const entry = yield* asked(() => queue.show(id))
    if (entry === undefined) return yield* new Refused({ message: `the inbox has no event ${id}` })
    const now = yield* Clock.currentTimeMillis
    const { body } = entry
    const text = body === undefined ? undefined : textOf(body)
    const when = (at: number | undefined) => (at === undefined ? undefined : localTime(at, now))
    const rows = [
      ["state", entry.state],
      ["source", entry.source],
      ["type", entry.type ?? "unreadable"],
      ["key", entry.key],
      ["subject", entry.subject],
      ["version", entry.version === undefined ? undefined : `${entry.version}`],
      ["received", `${when(entry.receivedAt)}, ${plural(entry.receipts, "time")}`],
      ["attempts", `${entry.attempts}`],
      ["next attempt", entry.state === "received" ? when(entry.nextAt) : undefined],
      ["ended", when(entry.finishedAt)],
      ["error", entry.error],
      ["content type", entry.contentType],
      ...Object.entries(entry.headers)
        .filter(([name]) => !name.startsWith(":"))
        .map(([name, value]) => [`  ${name}`, value] as const)
    ].flatMap(([name = "", value]) =>
      value === undefined ? [] : [[name, plainText(value)] as const]
    )
    const column = Math.min(30, Math.max(...rows.map(([name]) => name.length)))
    yield* report(
      entryJson(entry),
      [
        ...rows.flatMap(([name, value]) =>
          labelled(`${name.padEnd(column)}  `, value, screenWidth())
        ),
        "",
        body === undefined
          ? "The body was dropped, because nothing needs it any longer."
          : (text ?? `The body is ${bytesText(body.byteLength)} that are not text: see --json.`)
      ].join("\n")
    )
  }, Effect.scoped)
).pipe(Command.withDescription("Show an event of an inbox, with its body"))

const idsArgument = Argument.String("ID").pipe(
  Argument.withDescription("As `petrel inbox list` shows them"),
  Argument.filterMap(
    (text) => (isId(text) ? Option.some(text) : Option.none()),
    () => idExpected
  ),
  Argument.atLeast(0)
)

/** A page of a selection: each decision takes its entries out of it. */
const pageSize = 500

const selection = {
  ...where,
  ids: idsArgument,
  all: isSet("all", "All that are dead or quarantined"),
  state: stateFlag("With --all, only those in this state"),
  source: sourceFlag
}

interface Selected {
  readonly database: string
  readonly table: string
  readonly ids: ReadonlyArray<string>
  readonly all: boolean
  readonly state: EntryState | undefined
  readonly source: string | undefined
}

/** Decides about the events that were named, or all of a selection. Reports how many there were. */
const decideAbout = Effect.fnUntraced(function* (
  { all, database, ids, source, state, table }: Selected,
  done: string,
  decide: (
    queue: {
      readonly retry: (id: string) => Promise<boolean>
      readonly resolve: (id: string, by: string) => Promise<boolean>
    },
    id: string
  ) => Promise<boolean>
) {
  if (all === ids.length > 0)
    return yield* refusal([all ? "ids and --all cannot be combined" : "name ids, or say --all"])
  if (!all && (source !== undefined || state !== undefined))
    return yield* refusal(["--state and --source belong to --all"])
  if (state !== undefined && !usualStates.includes(state))
    return yield* refusal([`only what is ${usualStates.join(" or ")} can be ${done}`])
  const queue = yield* openQueue(database, table)
  const decided = yield* asked(async () => {
    const made: Array<string> = []
    const others: Array<string> = []
    const take = async (id: string) => {
      const list = (await decide(queue, id)) ? made : others
      list.push(id)
    }
    for (const id of ids) await take(id)
    if (all)
      for (const one of state === undefined ? usualStates : [state]) {
        let before: string | undefined
        for (;;) {
          const page = await queue.list({ state: one, source, before, limit: pageSize })
          for (const { id } of page) await take(id)
          before = page.at(-1)?.id
          if (page.length < pageSize) break
        }
      }
    return { made, others }
  })
  if (!all && decided.others.length > 0)
    return yield* new Refused({
      message: `${decided.others.join(", ")}: the inbox has no dead or quarantined event of this id${decided.made.length > 0 ? `; ${plural(decided.made.length, "other")} ${done}` : ""}`
    })
  yield* report({ [done]: decided.made.length }, `${plural(decided.made.length, "event")} ${done}`)
})

const retry = Command.make("retry", selection, (selected) =>
  decideAbout(selected, "retried", (queue, id) => queue.retry(id)).pipe(Effect.scoped)
).pipe(
  Command.withDescription("Let the program work on dead or quarantined events again"),
  Command.withExamples([
    { command: "petrel inbox retry 17 18 --database postgres://127.0.0.1/shop" },
    { command: "petrel inbox retry --all --state quarantined --source stripe" }
  ])
)

const resolve = Command.make("resolve", { ...selection, by: byFlag }, ({ by, ...selected }) =>
  decideAbout(selected, "resolved", (queue, id) => queue.resolve(id, by)).pipe(Effect.scoped)
).pipe(Command.withDescription("Give up dead or quarantined events, and drop their bodies"))

const migrate = Command.make(
  "migrate",
  { ...where, print: isSet("print", "Only print the statements, for your own migrations") },
  Effect.fnUntraced(function* ({ database, print: onlyPrint, table }) {
    if (onlyPrint) return yield* print((yield* statementsFor(database, table)).trimEnd())
    const store = yield* openStore(database, table, true)
    yield* asked(() => store.migrate())
    yield* report({ table }, `The inbox ${table} is up to date`)
  }, Effect.scoped)
).pipe(
  Command.withDescription("Make the tables of an inbox, or bring them up to date"),
  Command.withExamples([
    { command: "petrel inbox migrate --database postgres://127.0.0.1/shop" },
    { command: "petrel inbox migrate --database mysql://127.0.0.1/shop --print" }
  ])
)

/** Looks after the inbox of a program that receives with petrel/receiver. */
export const inbox = Command.make("inbox").pipe(
  Command.withDescription("Manage the inbox of a program that receives webhooks (petrel/receiver)"),
  Command.withSubcommands([list, show, retry, resolve, migrate])
)
