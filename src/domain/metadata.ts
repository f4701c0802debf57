import { Schema } from "effect"

/** Entries of one endpoint: all workers have them in memory, with its other settings. */
export const maxMetadataEntries = 20
/** Upper bounds of an entry, bytes: twenty of them are 12 KB of the 64 KiB that a stored value may have. */
const maxKeyBytes = 64
const maxValueBytes = 512

const keyText = `[A-Za-z0-9][A-Za-z0-9_.:-]{0,${maxKeyBytes - 1}}`
const keyPattern = new RegExp(`^${keyText}$`)

/** The pattern of what `readMetadataEntry` reads, as JSON Schema has it. */
export const metadataEntryPattern = `^${keyText}=`

/** Returns why an entry of metadata may not have this name, or undefined. */
export const metadataKeyProblem = (key: string): string | undefined =>
  keyPattern.test(key)
    ? undefined
    : `must be 1 to ${maxKeyBytes} letters, digits, - _ . or :, and begin with a letter or digit`

/** The value of an entry. */
export const MetadataValue = Schema.String.check(
  Schema.makeFilter((text: string) =>
    /^\P{Cc}*$/u.test(text) && text.isWellFormed() && Buffer.byteLength(text) <= maxValueBytes
      ? undefined
      : `must be text of at most ${maxValueBytes} bytes in UTF-8, on one line`
  )
)

/** What an endpoint is for, on one line. */
export const Description = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      /^\P{Cc}{1,500}$/u.test(text) && text.isWellFormed()
        ? undefined
        : "must be 1 to 500 characters on one line",
    { toJsonSchema: () => ({ minLength: 1, maxLength: 500 }) }
  )
)

/** An entry of metadata that is looked for: its name, and its whole value. */
export type MetadataEntry = readonly [key: string, value: string]

/** Reads `key=value`; undefined where the text is none. The value may be empty, or have a `=`. */
export const readMetadataEntry = (text: string): MetadataEntry | undefined => {
  const equals = text.indexOf("=")
  const key = text.slice(0, equals)
  return equals < 1 || metadataKeyProblem(key) !== undefined
    ? undefined
    : [key, text.slice(equals + 1)]
}

/** Returns true where metadata have all of these entries. */
export const hasMetadata = (
  metadata: Readonly<Record<string, string>> | undefined,
  entries: ReadonlyArray<MetadataEntry>
): boolean =>
  entries.every(
    ([key, value]) =>
      metadata !== undefined && Object.hasOwn(metadata, key) && metadata[key] === value
  )
