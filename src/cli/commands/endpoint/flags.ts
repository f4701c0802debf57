import { Result } from "effect"
import type { Command, Flag } from "effect/cli"
import { AlertSettings } from "../../../domain/alert.ts"
import { usualHeaderNames } from "../../../domain/header-names.ts"
import type {
  EndpointSettings,
  InputName,
  RemovableName
} from "../../../domain/settings/endpoint-table.ts"
import type { NamesBy } from "../../../domain/settings/setting.ts"
import type { EndpointPatch } from "../../../operations/endpoints/endpoint-settings.ts"
import { endpointInputs, NewEndpoint } from "../../../operations/endpoints/endpoint-settings.ts"
import { readAlertChoice } from "../../flags/alert-settings.ts"
import { settingName } from "../../flags/flag-problems.ts"
import { noForwardHeader, readForwarded } from "../../flags/forward-flags.ts"
import { isSet, repeated, textFlag } from "../../flags/shared.ts"
import {
  type Read,
  readCircuit,
  readHeaderNames,
  readHeaders,
  readNumber,
  readRateLimit,
  readRetry,
  readRetryFor,
  readSwitch,
  readText,
  readTime,
  readTypes
} from "./flag-readers.ts"

/** The parsed settings. Each is valid by itself. */
export type EndpointFields = Omit<NewEndpoint, "url"> & Pick<EndpointPatch, "url">

/** Returns the end of a description that says what holds without the flag. */
type OrElse = (usual: string) => string

/** A setting on the command line. */
interface SettingFlag<Value> {
  /** Returns its flag, or several. */
  readonly flag: (orElse: OrElse, name: InputName) => Flag.Flag<unknown> | Command.Command.Config
  /** Returns what the flags say, with a sentence for each that is wrong. */
  readonly read: (given: never, name: string) => Read<Value>
}

/** A setting with one flag of its name, whose default is said as the table of settings says it. */
const one = <Value>(
  metavar: string,
  description: string,
  read: (text: string, name: string) => Read<Value>,
  usual?: string
) => ({
  flag: (orElse: OrElse, name: InputName) => {
    const fallback = usual ?? endpointInputs[name].usual
    const end = fallback === undefined ? "" : orElse(fallback)
    return textFlag(settingName(name), metavar, `${description}${end}`)
  },
  read
})

const { fields } = NewEndpoint

/** The settings of an endpoint on the command line, in the order of the help. */
const settingFlags = {
  url: one("URL", "Where its events are sent", readText(fields.url)),
  types: one("FILTERS", "The event types it wants: 'invoice.>,*.created'", readTypes),
  secret: {
    flag: (orElse: OrElse) => ({
      secretFile: textFlag(
        "secret-file",
        "FILE",
        `The secret to sign with${orElse(endpointInputs.secret.usual)}`
      ),
      secret: textFlag(
        "secret",
        "-",
        "The same from standard input; the secret itself is seen by others"
      )
    }),
    read: (secret: string) => Result.succeed(secret)
  },
  sign: one("SCHEME", "standard, standard-ed25519, stripe, github or none", readText(fields.sign)),
  signatureHeader: one("NAME", "For --sign stripe", readText(fields.signatureHeader)),
  headerNames: {
    flag: (orElse: OrElse) => ({
      id: textFlag(
        "id-header",
        "NAME",
        `The header with the event's id${orElse(usualHeaderNames.id)}`
      ),
      type: textFlag(
        "type-header",
        "NAME",
        `The header with the event's type${orElse(usualHeaderNames.type)}`
      ),
      timestamp: textFlag(
        "timestamp-header",
        "NAME",
        `The header with the time of the attempt; libraries that verify look for the usual name${orElse(usualHeaderNames.timestamp)}`
      )
    }),
    read: readHeaderNames
  },
  retry: one("PRESET-OR-JSON", "A name from `petrel presets`, or a policy", readRetry),
  retryFor: {
    flag: () =>
      repeated(
        "retry-for",
        "FILTER=PRESET-OR-JSON",
        "The same for some event types, such as 'invoice.>=stripe'; may be repeated"
      ),
    read: readRetryFor
  },
  circuit: one("JSON", `When it is spared and given up, such as '{"failures":3}'`, readCircuit),
  maxInFlight: one("N", "Requests at the same time", readNumber(fields.maxInFlight)),
  adapt: one(
    "ON-OR-OFF",
    "Fewer at the same time while it answers 429 or slows down",
    readSwitch,
    "off"
  ),
  rate: one(
    "RATE",
    "Requests per second: 20/s, 30/min or, with how many at once, '20/s burst 40'",
    readRateLimit
  ),
  timeout: one("DURATION", "For a whole attempt", readTime),
  connectTimeout: one("DURATION", "For look-up, TCP and TLS of a connection", readTime),
  redirects: one("N", "Redirects that are followed", readNumber(fields.redirects)),
  contact: one(
    "TEXT",
    "Whom to tell when it does not work, named in its alerts",
    readText(fields.contact)
  ),
  alerts: one(
    "JSON|off",
    `When alerts are raised about it, such as '{"successWarnPercent":98}'`,
    (text) => readAlertChoice("alerts", text, AlertSettings)
  ),
  format: one(
    "FORMAT",
    "slack: as incoming webhooks of chat tools take messages, unsigned; for an endpoint that only gets alerts",
    readText(fields.format)
  ),
  operational: {
    flag: () => isSet("operational", "Gets its tenant's alerts (the types petrel.alert.>)"),
    read: (given: boolean) => Result.succeed(given)
  },
  headers: {
    flag: () => ({
      headerFile: textFlag(
        "header-file",
        "FILE",
        "Headers sent with each request, one 'NAME: VALUE' a line"
      ),
      header: repeated(
        "header",
        "'NAME: VALUE'",
        "The same where others may see it; may be repeated"
      )
    }),
    read: readHeaders
  },
  forwardHeaders: {
    flag: () => ({
      forwardHeader: repeated(
        "forward-header",
        "NAME",
        "It gets this header of the event's NATS message, such as x-correlation-id; may be repeated"
      )
    }),
    read: ({ forwardHeader, noForwardHeader = [] }: ForwardFlags) =>
      readForwarded(forwardHeader, noForwardHeader)
  }
} satisfies { readonly [Name in InputName]: SettingFlag<EndpointFields[Name]> }

interface ForwardFlags {
  readonly forwardHeader: ReadonlyArray<string>
  readonly noForwardHeader?: ReadonlyArray<string>
}

type SettingFlags = typeof settingFlags
type Config = { readonly [Name in InputName]: ReturnType<SettingFlags[Name]["flag"]> }

const flagsWith = (orElse: OrElse): Config =>
  Object.fromEntries(
    Object.entries<SettingFlag<unknown>>(settingFlags).map(([name, { flag }]) => [
      name,
      flag(orElse, name as InputName)
    ])
  ) as Config

/** All settings of an endpoint, as text. They are validated together. */
export const endpointFlags = flagsWith((usual) => ` (default: ${usual})`)

/** The same settings for an existing endpoint. Settings that are not given stay unchanged. */
export const changeFlags = flagsWith(() => "")

/** What the flags say that remove a setting. */
const removals = {
  contact: "Its alerts name nobody",
  format: "Bodies are the events' bytes",
  rate: "As many requests as it takes",
  timeout: "Back to the retry policy's time-out",
  connectTimeout: "Back to the retry policy's"
} satisfies Record<RemovableName, string>

/** The names of the settings with a flag that removes them, in the order of the help. */
export const removableNames = Object.keys(removals) as ReadonlyArray<RemovableName>

/** Flags that remove one entry of a setting; may be repeated. */
const entryRemovals = {
  headers: repeated("no-header", "NAME", "Sends this header no more; may be repeated"),
  forwardHeaders: noForwardHeader,
  retryFor: repeated(
    "no-retry-for",
    "FILTER",
    "These event types have no policy of their own any more; may be repeated"
  )
} satisfies Record<NamesBy<EndpointSettings, "null by name">, Flag.Flag<ReadonlyArray<string>>>

/** Flags that remove a setting, or an entry of one. */
export const removalFlags = {
  ...entryRemovals,
  ...(Object.fromEntries(
    Object.entries(removals).map(([name, text]) => [name, isSet(`no-${settingName(name)}`, text)])
  ) as Record<RemovableName, Flag.Flag<boolean>>)
}

/** What is given of an endpoint on the command line: as texts, with files and secrets read. */
export type GivenSettings = {
  readonly [Name in InputName]?: Parameters<SettingFlags[Name]["read"]>[0] | undefined
}

/** Parses all flags of an endpoint. Fails with the problems of all invalid flags. */
export const readSettings = (given: GivenSettings): Read<EndpointFields> => {
  const problems: Array<string> = []
  const found = new Map<string, unknown>()
  for (const [name, { read }] of Object.entries<SettingFlag<unknown>>(settingFlags)) {
    const value = given[name as InputName]
    if (value === undefined) continue
    Result.match(read(value as never, name), {
      onSuccess: (setting) => found.set(name, setting),
      onFailure: (sentences) => problems.push(...sentences)
    })
  }
  return problems.length === 0
    ? Result.succeed(Object.fromEntries(found) as EndpointFields)
    : Result.fail(problems)
}
