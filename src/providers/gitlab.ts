import { createHash } from "node:crypto"
import { momentAt, readObject, textAt } from "./body.ts"
import { fromBase64 } from "./encoded.ts"
import { daysMs, minutesMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest, Verification } from "./provider.ts"
import { secretsSetting, type TimedSettings, toleranceSetting } from "./settings.ts"
import { headerOf, isSame, mismatch } from "./signed.ts"
import { makeStandardVerify } from "./standard-webhooks.ts"

const isSigningToken = (secret: string): boolean => secret.startsWith("whsec_")

const header = "x-gitlab-token"

/** Of texts whose lengths may differ, so that the comparison takes one time for all. */
const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

const makeVerify = ({ secrets, toleranceMs = minutesMs(5) }: TimedSettings) => {
  const places = [...secrets.keys()]
  const signing = places.filter((place) => isSigningToken(secrets[place] ?? ""))
  const tokens = places.filter((place) => !signing.includes(place))
  const digests = tokens.map((place) => digestOf(secrets[place] ?? ""))
  const verifySigned = makeStandardVerify({
    secrets: signing.map((place) => secrets[place] ?? ""),
    toleranceMs
  })
  return (request: ReceivedRequest, nowMs: number): Verification => {
    // A receiver that only knows tokens is also sent signatures, and the other way round.
    const isSigned = request.headers["webhook-signature"] !== undefined
    if (signing.length > 0 && (isSigned || tokens.length === 0)) {
      const found = verifySigned(request, nowMs)
      return found.ok ? { ...found, secret: signing[found.secret] ?? 0 } : found
    }
    const given = headerOf(request, header)
    if (!given.ok) return given
    const digest = digestOf(given.value)
    const secret = digests.findIndex((one) => isSame(one, digest))
    return secret === -1
      ? mismatch(tokens.length, "token")
      : { ok: true, secret: tokens[secret] ?? 0 }
  }
}

const read = (request: ReceivedRequest): Reading =>
  readObject(request, "GitLab", "`object_kind`", (event) => {
    const kind = textAt(event, "object_kind") ?? textAt(event, "event_name")
    const action = textAt(event, "object_attributes", "action")
    return {
      id: request.headers["webhook-id"] || request.headers["idempotency-key"] || undefined,
      type: kind === undefined || action === undefined ? kind : `${kind}.${action}`,
      at: momentAt(event, "s", "object_attributes", "updated_at"),
      subject:
        textAt(event, "project", "path_with_namespace") ?? textAt(event, "group", "full_path")
    }
  })

export const gitlabKind: ProviderKind<TimedSettings> = {
  name: "gitlab",
  title: "GitLab",
  settings: [
    secretsSetting("the webhook's signing tokens (whsec_…) or secret tokens", (secret) =>
      isSigningToken(secret) && fromBase64(secret.slice("whsec_".length)) === undefined
        ? "must have base64 after whsec_"
        : undefined
    ),
    toleranceSetting
  ],
  toleranceMs: minutesMs(5),
  // It sends again by hand or when its API is asked to: what it lists of the last 7 days.
  repeatsForMs: daysMs(7),
  waitsForMs: 10_000,
  retries429: false,
  words: {
    header: `\`webhook-signature\` with a signing token, else \`${header}\``,
    signed:
      "with a signing token `webhook-id`, `.`, `webhook-timestamp`, `.` and the body; else nothing, the token is compared",
    id: "`webhook-id`, else `idempotency-key`",
    type: "`object_kind` (else `event_name`), and `object_attributes.action` after a dot",
    at: "`object_attributes.updated_at`",
    subject: "`project.path_with_namespace`, else `group.full_path`"
  },
  make: (settings) => ({ verify: makeVerify(settings), read })
}

/**
 * Webhooks of GitLab, by their signing tokens (`whsec_…`, from GitLab 19) or their secret tokens. A
 * secret token signs nothing: whoever sees one request can make others.
 */
export const gitlab = (settings: TimedSettings): Provider => provide(gitlabKind, settings)
