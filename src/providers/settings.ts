import type { GenericHmacScheme } from "./generic-hmac-scheme.ts"

/** What a receiver has to know of its own account at a sender. Each provider takes some of these. */
export interface ProviderSettings {
  /** What the sender signs with, or its public keys; while one is replaced, both. */
  readonly secrets?: ReadonlyArray<string>
  /** How far the signed time may be off, into the past and into the future, ms. */
  readonly toleranceMs?: number
  /** The URL that the sender was given, without its query: some sign it, and a proxy may change it. */
  readonly publicUrl?: string
  /** What the sender calls this receiver. */
  readonly webhookId?: string
  /** A word of one's own choice that the sender repeats when the receiver is set up. */
  readonly verifyToken?: string
  /**
   * Returns the sender's certificate and those above it, in PEM. It is asked for each request and
   * only for URLs of the sender: keep what it got.
   */
  readonly certificate?: (url: string) => Promise<string>
  /** Certificates in PEM that the sender's may come from. (Default: those that Node trusts) */
  readonly roots?: ReadonlyArray<string>
  /** How a sender signs that is none of the known ones. */
  readonly scheme?: GenericHmacScheme
}

/** Settings of a provider that signs with secrets, which are used as they are written. */
export interface SecretSettings {
  /** While a secret is replaced, the new one and the old. */
  readonly secrets: ReadonlyArray<string>
}

/** As SecretSettings, of a provider that signs the time too. */
export interface TimedSettings extends SecretSettings {
  /** How far the signed time may be off, into the past and into the future, ms. */
  readonly toleranceMs?: number
}

export type ProviderSettingName = keyof ProviderSettings

/** A setting that a provider takes. */
export interface ProviderSetting {
  readonly name: ProviderSettingName
  readonly isRequired: boolean
  /** What it holds, as a part of a sentence. */
  readonly text: string
  /** Returns what is wrong with a value, as the rest of a sentence that begins with its name. */
  readonly problem?: (value: unknown) => string | undefined
}

/** Thrown where a provider is made with settings that it cannot work with. */
export class InvalidProviderSettings extends Error {
  override readonly name = "InvalidProviderSettings"
  /** One sentence each. They show no secret. */
  readonly problems: ReadonlyArray<string>
  constructor(provider: string, problems: ReadonlyArray<string>) {
    super(`${provider}: ${problems.join("; ")}`)
    this.problems = problems
  }
}

const maxSecrets = 10

/** Returns the setting of secrets. `problem` says what is wrong with one of them. */
export const secretsSetting = (
  text: string,
  problem?: (secret: string) => string | undefined
): ProviderSetting => ({
  name: "secrets",
  isRequired: true,
  text,
  problem: (value) => {
    if (!Array.isArray(value) || value.some((one) => typeof one !== "string"))
      return "must be a list of texts"
    if (value.length === 0) return `must have one or more: ${text}`
    if (value.length > maxSecrets) return `must have at most ${maxSecrets}`
    if (value.includes("")) return "must not have an empty one"
    return value.map((one) => problem?.(one)).find((found) => found !== undefined)
  }
})

const maxToleranceMs = 7 * 24 * 60 * 60 * 1_000

export const toleranceSetting: ProviderSetting = {
  name: "toleranceMs",
  isRequired: false,
  text: "how far the signed time may be off, ms",
  problem: (value) =>
    typeof value === "number" && value > 0 && value <= maxToleranceMs
      ? undefined
      : `must be above 0 and at most ${maxToleranceMs} ms`
}

export const publicUrlSetting: ProviderSetting = {
  name: "publicUrl",
  isRequired: true,
  text: "the URL that the sender was given, which it signs, without its query",
  problem: (value) =>
    typeof value === "string" && URL.canParse(value) && /^https?:\/\/[^?#]*$/.test(value)
      ? undefined
      : "must be a URL such as https://hooks.example.com/in, without a query"
}

/** Returns a setting that holds a text. */
export const textSetting = (
  name: ProviderSettingName,
  isRequired: boolean,
  text: string
): ProviderSetting => ({
  name,
  isRequired,
  text,
  problem: (value) =>
    typeof value === "string" && value !== "" ? undefined : "must be a text that is not empty"
})

/** Returns the URL that the sender has signed: the public one, with the query of the request. */
export const signedUrl = (publicUrl: string, url: string): string => {
  const start = url.indexOf("?")
  return start === -1 ? publicUrl : publicUrl + url.slice(start)
}
