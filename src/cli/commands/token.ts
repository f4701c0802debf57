import { Clock, Duration, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Broker } from "../../broker/broker.ts"
import { clockOf } from "../../broker/kept-since.ts"
import { present } from "../../domain/record.ts"
import { jsonOf } from "../../domain/timestamp.ts"
import { isToken } from "../../domain/token.ts"
import { operatorNamed } from "../../operations/caller.ts"
import { readInput } from "../../operations/input.ts"
import {
  allTenants,
  CreatedToken,
  defaultTokenRate,
  NewToken,
  RevokedToken,
  scopes,
  TokenView,
  tokenIdOf
} from "../../operations/token.ts"
import { createToken, listTokens, revokeToken } from "../../operations/tokens/manage-tokens.ts"
import { showToken } from "../../operations/tokens/token-operations.ts"
import { LiveTokens } from "../../operations/tokens/token-store.ts"
import { countText, localTime, plural } from "../../text/quantities.ts"
import { flagProblems } from "../flags/flag-problems.ts"
import { byFlag, durationFlag, isSet, maybe, repeated, textFlag } from "../flags/shared.ts"
import { makeTable } from "../format/screen.ts"
import { refusal } from "../refused.ts"
import { connectedWithTokens, petrel, report } from "../root-command.ts"
import { print, remark } from "../terminal/stdout.ts"

const encodeCreated = jsonOf(CreatedToken)
const encodeView = jsonOf(TokenView)
const encodeRevoked = jsonOf(RevokedToken)

const operatorScope = "operator"
const everyScope = "all"
const tenantScopes = scopes.filter((scope) => scope !== operatorScope)

const tenantArgument = (description: string) =>
  Argument.String("TENANT").pipe(
    Argument.withDescription(description),
    Argument.filterMap(
      (text) => (isToken(text) ? Option.some(text) : Option.none()),
      () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
    ),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

/** Returns the scopes that are asked for: `all` stands for all that the token may have. */
const scopesOf = (given: ReadonlyArray<string>, operator: boolean): ReadonlyArray<string> => {
  const named = given.flatMap((text) => text.split(",").map((name) => name.trim()))
  const possible = operator ? scopes : tenantScopes
  if (named.length === 0) return operator ? possible : []
  return [...new Set(named.flatMap((name) => (name === everyScope ? possible : [name])))]
}

const brokersTime = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  return clockOf(yield* streamInfo("read the broker's clock", names.history))
})

const create = Command.make(
  "create",
  {
    tenant: tenantArgument("Whose token; none with --operator"),
    operator: isSet("operator", "For all tenants and the installation itself"),
    scope: repeated(
      "scope",
      "SCOPE",
      `What it may do: ${tenantScopes.join(", ")}, or all of these; may be repeated (default with --operator: everything)`
    ),
    name: textFlag("name", "TEXT", "What it is for"),
    expires: durationFlag("expires", "How long it is valid (default: until it is revoked)").pipe(
      maybe
    ),
    rate: Flag.Int("rate").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription(`Requests per second (default: ${countText(defaultTokenRate)})`),
      maybe
    ),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, expires, name, operator, rate, scope, tenant }) {
    if (operator === (tenant !== undefined))
      return yield* refusal([
        operator
          ? "a tenant and --operator cannot be combined"
          : "say whose token: a tenant such as acme, or --operator for all of them"
      ])
    const chosen = scopesOf(scope, operator)
    if (chosen.length === 0)
      return yield* refusal([
        `say what it may do with --scope: ${tenantScopes.join(", ")}, or all of these`
      ])
    const unknown = chosen.find((name) => !(scopes as ReadonlyArray<string>).includes(name))
    if (unknown !== undefined)
      return yield* refusal([
        `--scope "${unknown}" must be one of ${(operator ? scopes : tenantScopes).join(", ")}, or all`
      ])
    const endAfter = (now: number) =>
      expires === undefined ? {} : { expiresAt: now + Duration.toMillis(expires) }
    const settings = readInput(NewToken, {
      tenant: tenant ?? allTenants,
      scopes: chosen,
      ...present({ name, rate }),
      ...endAfter(yield* Clock.currentTimeMillis)
    })
    const fields = { scopes: "--scope", expiresAt: "--expires" }
    if (settings._tag === "Failure") return yield* refusal(flagProblems(settings.failure, fields))
    const { token, ...made } = yield* Effect.gen(function* () {
      // A console takes it until then, whatever this machine's clock says.
      const now = yield* brokersTime
      const asked = { ...settings.success, ...endAfter(now) }
      return yield* createToken(asked, operatorNamed(by), now)
    }).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems, fields))),
      Effect.provide(LiveTokens.layer),
      Effect.provide(connectedWithTokens)
    )
    yield* report(encodeCreated({ ...made, token }), token)
    yield* remark("It is shown this once: keep it as you keep a password.")
  })
).pipe(
  Command.withDescription("Make a token for the HTTP API"),
  Command.withExamples([
    { command: "petrel token create acme --scope events:publish --expires 90d" },
    { command: "petrel token create acme --scope all --name 'their dashboard'" },
    { command: "petrel token create --operator" }
  ])
)

const headings = ["token", "tenant", "scopes", "name", "made", "by", "expires"]

const rowOf =
  (now: number) =>
  (one: TokenView): ReadonlyArray<string> => [
    one.id,
    one.tenant === allTenants ? "all" : one.tenant,
    one.scopes.length === scopes.length ? "all" : one.scopes.join(","),
    one.name ?? "-",
    localTime(one.createdAt, now),
    one.by,
    one.expiresAt === undefined
      ? "-"
      : one.expiresAt <= now
        ? "has expired"
        : localTime(one.expiresAt, now)
  ]

const list = Command.make(
  "list",
  { tenant: tenantArgument("Only those of this tenant") },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const tokens = yield* Effect.provide(listTokens(tenant), connectedWithTokens)
    if (json) {
      for (const token of tokens) yield* print(JSON.stringify(encodeView(token)))
      return
    }
    if (tokens.length === 0)
      return yield* remark("There are no tokens: `petrel token create` makes one.")
    const now = yield* Clock.currentTimeMillis
    yield* Effect.forEach(makeTable(headings).lines(tokens.map(rowOf(now))), print)
  })
).pipe(Command.withDescription("List the tokens of the HTTP API, without their secrets"))

const tokenArgument = Argument.String("TOKEN").pipe(
  Argument.withDescription("Its id, as `petrel token list` shows it, or the token itself"),
  Argument.withSchema(Schema.NonEmptyString),
  // Who has found a token somewhere knows no id of it.
  Argument.map((text) => tokenIdOf(text) ?? text)
)

const show = Command.make(
  "show",
  { id: tokenArgument },
  Effect.fnUntraced(function* ({ id }) {
    const found = yield* Effect.provide(showToken(id), connectedWithTokens)
    const rows = [rowOf(yield* Clock.currentTimeMillis)(found)]
    yield* report(encodeView(found), makeTable(headings).lines(rows).join("\n"))
  })
).pipe(Command.withDescription("Show a token of the HTTP API, without its secret"))

const revoke = Command.make(
  "revoke",
  { id: tokenArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, id }) {
    const revoked = yield* revokeToken(id, { by }).pipe(
      Effect.provide(LiveTokens.layer),
      Effect.provide(connectedWithTokens)
    )
    const { length } = revoked.with
    yield* report(
      encodeRevoked(revoked),
      length === 0
        ? `${id} is revoked: it is refused from now on`
        : `${id} is revoked, with ${plural(length, "token")} made with it: they are refused from now on`
    )
  })
).pipe(Command.withDescription("Revoke a token of the HTTP API"))

export const token = Command.make("token").pipe(
  Command.withDescription("Tokens of the HTTP API: who may do what through it"),
  Command.withShortDescription("Tokens of the HTTP API"),
  Command.withSubcommands([create, list, show, revoke])
)
