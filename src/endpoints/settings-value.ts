import { Result, Schema } from "effect"
import { TenantSettings } from "../domain/tenant-settings.ts"

/** Stored settings that do not parse: something other than this version of Petrel wrote them. */
export class SettingsUnreadable extends Schema.TaggedError<SettingsUnreadable>()(
  "SettingsUnreadable",
  { key: Schema.String, problem: Schema.String }
) {
  override get message() {
    return `the settings under ${this.key} in the bucket of endpoints do not parse (a newer Petrel may have written them: change them with that one): ${this.problem}`
  }
}

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(TenantSettings))
const encode = Schema.encodeSync(Schema.fromJsonString(TenantSettings))

/** Returns settings as the bucket holds them. */
export const settingsText = (settings: TenantSettings): string => encode(settings)

/** Decodes the value under a settings key. */
export const decodeSettings = (
  key: string,
  value: string
): Result.Result<TenantSettings, SettingsUnreadable> =>
  Result.mapError(
    decode(value),
    ({ message }) => new SettingsUnreadable({ key, problem: message.replaceAll(/\s*\n\s*/g, " ") })
  )
