import { Result } from "effect"
import type { Flag } from "effect/cli"
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
import {
  flagsOf,
  forwardFlag,
  type Given,
  noForwardHeader,
  type OrElse,
  one,
  type Read,
  readAlertChoice,
  readGiven,
  readList,
  readNumber,
  readSwitch,
  readText,
  readTime,
  removalFlags,
  type SettingFlag
} from "../../flags/setting-flags.ts"
import { isSet, repeated, textFlag } from "../../flags/shared.ts"
import {
  readCircuit,
  readHeaderNames,
  readHeaders,
  readMetadata,
  readRateLimit,
  readRetry,
  readRetryFor,
  readTypes
} from "./flag-readers.ts"

/** The parsed settings. Each is valid by itself. */
export type EndpointFields = Omit<NewEndpoint, "url"> & Pick<EndpointPatch, "url">

const { fields } = NewEndpoint

/** The settings of an endpoint on the command line, in the order of the help. */
const settingFlags = {
  url: one("URL", "Where events are sent", readText(fields.url)),
  types: one("FILTERS", "The types of events that are sent: 'invoice.>,*.created'", readTypes),
  secret: {
    flag: (_: string, orElse: OrElse, usual: string | undefined) => ({
      secretFile: textFlag("secret-file", "FILE", `The secret to sign with${orElse(usual)}`),
      secret: textFlag(
        "secret",
        "-",
        "The same from standard input; --secret SECRET shows the secret to other users of the machine"
      )
    }),
    read: (secret: string) => Result.succeed(secret)
  },
  sign: one("SCHEME", "standard, standard-ed25519, stripe, github or none", readText(fields.sign)),
  signatureHeader: one(
    "NAME",
    "The header with the signature, with --sign stripe",
    readText(fields.signatureHeader)
  ),
  headerNames: {
    flag: (_: string, orElse: OrElse) => ({
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
  circuit: one(
    "JSON",
    `After which failures only probes are sent, such as '{"failures":3}'`,
    readCircuit
  ),
  maxInFlight: one("N", "Requests at the same time", readNumber(fields.maxInFlight)),
  adapt: one(
    "ON-OR-OFF",
    "Fewer at the same time while the receiver answers 429 or 503, times out or slows down",
    readSwitch,
    "off"
  ),
  rate: one(
    "RATE",
    "Requests per second: 20/s, 30/min; '20/s burst 40' allows 40 at once after a pause",
    readRateLimit
  ),
  timeout: one("DURATION", "How long an attempt may take", readTime),
  connectTimeout: one(
    "DURATION",
    "How long look-up, TCP and TLS of a connection may take",
    readTime
  ),
  redirects: one("N", "How many redirects are followed", readNumber(fields.redirects)),
  redirectsTo: one(
    "ORIGINS",
    "Other origins that redirects may lead to: 'https://eu.example.com'",
    readList(fields.redirectsTo)
  ),
  contact: one(
    "TEXT",
    "Whom to notify of problems; alerts about the endpoint carry it",
    readText(fields.contact)
  ),
  description: one("TEXT", "What the endpoint is for", readText(fields.description)),
  metadata: {
    flag: () =>
      repeated(
        "metadata",
        "KEY=VALUE",
        "An entry for your own programs, such as 'customer=42'; may be repeated"
      ),
    read: readMetadata
  },
  alerts: one(
    "JSON|off",
    `When alerts about the endpoint are raised, such as '{"successWarnPercent":98}'`,
    (text) => readAlertChoice("alerts", text, AlertSettings)
  ),
  format: one(
    "FORMAT",
    "slack: messages for incoming webhooks of chat tools, unsigned; for an endpoint that gets nothing but alerts",
    readText(fields.format)
  ),
  operational: {
    flag: () =>
      isSet("operational", "The endpoint gets its tenant's alerts (the types petrel.alert.>)"),
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
        "The same, visible to other users of the machine; may be repeated"
      )
    }),
    read: readHeaders
  },
  forwardHeaders: forwardFlag(
    "Send this header of the event's NATS message, such as x-correlation-id; may be repeated"
  )
} satisfies { readonly [Name in InputName]: SettingFlag<EndpointFields[Name]> }

/** All settings of an endpoint, as text. They are validated together. */
export const endpointFlags = flagsOf(settingFlags, endpointInputs, (usual) =>
  usual === undefined ? "" : ` (default: ${usual})`
)

/** The same settings for an existing endpoint. Settings that are not given stay unchanged. */
export const changeFlags = flagsOf(settingFlags, endpointInputs, () => "")

/** What the flags say that remove a setting. */
const removals = {
  contact: "Alerts about it name nobody",
  description: "It has no description",
  redirectsTo: "Redirects may lead to the URL's own origin only",
  format: "Bodies are the events' bytes",
  rate: "Without a limit",
  timeout: "Back to the retry policy's time-out",
  connectTimeout: "Back to the retry policy's"
} satisfies Record<RemovableName, string>

/** Flags that remove one entry of a setting; may be repeated. */
const entryRemovals = {
  headers: repeated("no-header", "NAME", "Stop sending this header; may be repeated"),
  forwardHeaders: noForwardHeader,
  metadata: repeated("no-metadata", "KEY", "Remove this entry; may be repeated"),
  retryFor: repeated(
    "no-retry-for",
    "FILTER",
    "Remove the policy of these event types; may be repeated"
  )
} satisfies Record<NamesBy<EndpointSettings, "null by name">, Flag.Flag<ReadonlyArray<string>>>

/** The settings whose entries are removed by flags; headers to forward are read with those given. */
export type EntryName = Exclude<keyof typeof entryRemovals, "forwardHeaders">
export const entryNames = Object.keys(entryRemovals).filter(
  (name): name is EntryName => name !== "forwardHeaders"
)

/** Flags that remove a setting, or an entry of one. */
export const withoutFlags = { ...entryRemovals, ...removalFlags(removals) }

/** What is given of an endpoint on the command line: as texts, with files and secrets read. */
export type GivenSettings = Given<typeof settingFlags>

/** Parses all flags of an endpoint. Fails with the problems of all invalid flags. */
export const readSettings = (given: GivenSettings): Read<EndpointFields> =>
  readGiven(settingFlags, given)
