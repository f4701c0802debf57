import { listings } from "../../src/providers/listings/listings.ts"
import { type KnownProvider, providers } from "../../src/providers/providers.ts"

const cell = (text: string): string => text.replaceAll("|", "\\|")

const table = (
  heading: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string =>
  [heading, heading.map(() => "---"), ...rows]
    .map((row) => `| ${row.map(cell).join(" | ")} |`)
    .join("\n")

const all = [...providers.values()]

const code = (text: string): string => (text.includes("`") ? text : `\`${text}\``)

const spanText = (ms: number): string => {
  const [day, hour, minute] = [86_400_000, 3_600_000, 60_000]
  if (ms >= 2 * day || ms === day) return `${ms / day} d`
  if (ms >= hour) return `${ms / hour} h`
  return ms >= minute ? `${ms / minute} min` : `${ms / 1_000} s`
}

const toleranceText = ({ settings, toleranceMs }: KnownProvider): string => {
  if (!settings.some(({ name }) => name === "toleranceMs")) return "no time is signed"
  return toleranceMs === undefined ? "not looked at" : spanText(toleranceMs)
}

const settingsText = ({ settings }: KnownProvider): string =>
  settings
    .filter(({ name }) => name !== "toleranceMs")
    .map(({ isRequired, name, text }) => `\`${name}\`${isRequired ? "" : " (optional)"}: ${text}`)
    .join("; ")

const verification = table(
  ["provider", "header", "what is signed", "the time may be off by"],
  all.map((one) => [
    `\`${one.name}\``,
    code(one.words.header),
    one.words.signed,
    toleranceText(one)
  ])
)

const events = table(
  [
    "provider",
    "id",
    "type",
    "time",
    "subject",
    "waits for",
    "repeats for",
    "tries again after 429"
  ],
  all.map(({ name, repeatsForMs, retries429, waitsForMs, words: { at, id, subject, type } }) => [
    `\`${name}\``,
    ...[
      id,
      type,
      at,
      subject,
      waitsForMs === undefined ? "–" : spanText(waitsForMs),
      spanText(repeatsForMs),
      retries429 ? "yes" : "–"
    ]
  ])
)

const settings = table(
  ["provider", "settings"],
  all.map((one) => [`\`${one.name}\` (${one.title})`, settingsText(one)])
)

const lists = table(
  [
    "provider",
    "what is listed",
    "kept for",
    "what is missing comes",
    "credentials",
    "`--webhook-id`"
  ],
  [...listings].map(
    ([
      name,
      {
        keepsMs,
        key,
        title,
        webhook,
        words: { comes, listed }
      }
    ]) => {
      const example = `${webhook.text}: \`${webhook.example}\``
      return [
        ...[name === "standard-webhooks" ? `\`${name}\` (${title})` : `\`${name}\``, listed],
        ...[spanText(keepsMs), comes, key, webhook.isRequired ? example : `optional: ${example}`]
      ]
    }
  )
)

/** Returns docs/reference/providers.md: `template` with the tables in place of their names. */
export const providersReference = (template: string): string => {
  const tables: Readonly<Record<string, string>> = {
    verification,
    events,
    settings,
    lists
  }
  return template.replaceAll(
    /(<!-- (\w+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (whole, begin: string, name: string, end: string) => {
      const made = tables[name]
      return made === undefined ? whole : `${begin}\n${made}\n\n${end}`
    }
  )
}
