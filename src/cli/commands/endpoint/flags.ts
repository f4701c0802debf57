import { usualHeaderNames, usualStripeHeader } from "../../../domain/header-names.ts"
import { isSet, repeated, textFlag } from "../../flags/shared.ts"

/** How its requests are signed, and how their headers are named. */
const signingFlags = (orElse: (fallback: string) => string) => ({
  secretFile: textFlag(
    "secret-file",
    "FILE",
    `The secret to sign with${orElse("a new one, which is shown")}`
  ),
  secret: textFlag(
    "secret",
    "-",
    "The same from standard input; the secret itself is seen by others"
  ),
  sign: textFlag(
    "sign",
    "SCHEME",
    `standard, standard-ed25519, stripe, github or none${orElse("standard")}`
  ),
  signatureHeader: textFlag(
    "signature-header",
    "NAME",
    `For --sign stripe${orElse(usualStripeHeader)}`
  ),
  idHeader: textFlag(
    "id-header",
    "NAME",
    `The header with the event's id${orElse(usualHeaderNames.id)}`
  ),
  typeHeader: textFlag(
    "type-header",
    "NAME",
    `The header with the event's type${orElse(usualHeaderNames.type)}`
  ),
  timestampHeader: textFlag(
    "timestamp-header",
    "NAME",
    `The header with the time of the attempt; libraries that verify look for the usual name${orElse(usualHeaderNames.timestamp)}`
  )
})

const flagsWith = (orElse: (fallback: string) => string) => ({
  url: textFlag("url", "URL", "Where its events are sent"),
  types: textFlag(
    "types",
    "FILTERS",
    `The event types it wants: 'invoice.>,*.created'${orElse("all")}`
  ),
  ...signingFlags(orElse),
  retry: textFlag(
    "retry",
    "PRESET-OR-JSON",
    `A name from \`petrel presets\`, or a policy${orElse("default")}`
  ),
  retryFor: repeated(
    "retry-for",
    "FILTER=PRESET-OR-JSON",
    "The same for some event types, such as 'invoice.>=stripe'; may be repeated"
  ),
  circuit: textFlag(
    "circuit",
    "JSON",
    `When it is spared and given up, such as '{"failures":3}'${orElse("{}, all as usual")}`
  ),
  maxInFlight: textFlag("max-in-flight", "N", `Requests at the same time${orElse("10")}`),
  adapt: textFlag(
    "adapt",
    "ON-OR-OFF",
    `Fewer at the same time while it answers 429 or slows down${orElse("off")}`
  ),
  rate: textFlag(
    "rate",
    "RATE",
    `Requests per second: 20/s, 30/min or, with how many at once, '20/s burst 40'${orElse("no limit")}`
  ),
  timeout: textFlag(
    "timeout",
    "DURATION",
    `For a whole attempt${orElse("the policy's, else 30 seconds")}`
  ),
  connectTimeout: textFlag(
    "connect-timeout",
    "DURATION",
    `For look-up, TCP and TLS of a connection${orElse("the policy's, else 10 seconds")}`
  ),
  redirects: textFlag("redirects", "N", `Redirects that are followed${orElse("3")}`),
  contact: textFlag(
    "contact",
    "TEXT",
    `Whom to tell when it does not work, named in its alerts${orElse("nobody")}`
  ),
  alerts: textFlag(
    "alerts",
    "JSON|off",
    `When alerts are raised about it, such as '{"successWarnPercent":98}'${orElse("{}, as its tenant has it")}`
  ),
  format: textFlag(
    "format",
    "FORMAT",
    `slack: as incoming webhooks of chat tools take messages, unsigned; for an endpoint that only gets alerts${orElse("the event's bytes")}`
  ),
  operational: isSet("operational", "Gets its tenant's alerts (the types petrel.alert.>)"),
  headerFile: textFlag(
    "header-file",
    "FILE",
    "Headers sent with each request, one 'NAME: VALUE' a line"
  ),
  header: repeated("header", "'NAME: VALUE'", "The same where others may see it; may be repeated"),
  forwardHeader: repeated(
    "forward-header",
    "NAME",
    "It gets this header of the event's NATS message, such as x-correlation-id; may be repeated"
  )
})

/** All settings of an endpoint, as text. They are validated together. */
export const endpointFlags = flagsWith((fallback) => ` (default: ${fallback})`)

/** The same settings for an existing endpoint. Settings that are not given stay unchanged. */
export const changeFlags = flagsWith(() => "")
