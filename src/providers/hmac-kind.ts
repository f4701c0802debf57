import { createSecretKey, type KeyObject } from "node:crypto"
import type { ProviderKind } from "./kind.ts"
import type { HandshakeAnswer, Reading, ReceivedRequest, Verification } from "./provider.ts"
import { type ProviderSettings, type SecretSettings, toleranceSetting } from "./settings.ts"
import { type Claim, type Refusal, verifiedByHmac } from "./signed.ts"

/** A provider that signs by HMAC-SHA256, with what differs from one to the other. */
export interface HmacKind<Settings extends SecretSettings & ProviderSettings>
  extends Omit<ProviderKind<Settings>, "make" | "settings"> {
  readonly settings: ProviderKind["settings"]
  /** Whether the time is signed, so that `toleranceMs` is a setting. */
  readonly signsTime: boolean
  readonly claimOf: (request: ReceivedRequest, settings: Settings) => Claim | Refusal
  readonly read: (request: ReceivedRequest) => Reading
  /** `verified` verifies the request. */
  readonly handshake?: (
    request: ReceivedRequest,
    verified: () => Verification,
    settings: Settings,
    keys: ReadonlyArray<KeyObject>
  ) => HandshakeAnswer | undefined
}

/** Returns the kind that verifies by the claims of its requests. */
export const hmacKind = <Settings extends SecretSettings & ProviderSettings>({
  claimOf,
  handshake,
  read,
  signsTime,
  ...kind
}: HmacKind<Settings>): ProviderKind<Settings> => ({
  ...kind,
  settings: signsTime ? [...kind.settings, toleranceSetting] : kind.settings,
  make: (settings) => {
    const keys = settings.secrets.map((secret) => createSecretKey(Buffer.from(secret)))
    const toleranceMs = settings.toleranceMs ?? kind.toleranceMs
    const verify = (request: ReceivedRequest, nowMs: number) =>
      verifiedByHmac(claimOf(request, settings), keys, nowMs, toleranceMs)
    return {
      verify,
      read,
      ...(handshake !== undefined && {
        handshake: (request: ReceivedRequest, nowMs: number) =>
          handshake(request, () => verify(request, nowMs), settings, keys)
      })
    }
  }
})
