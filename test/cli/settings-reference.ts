import { endpointRequests, endpointSettings } from "../../src/domain/settings/endpoint-table.ts"
import type { Input, Removal, Setting } from "../../src/domain/settings/setting.ts"
import { tenantSettings } from "../../src/domain/settings/tenant-table.ts"

const removals: Readonly<Record<Removal, string>> = {
  never: "",
  null: "`null`",
  empty: "`{}` or `false`",
  "null by name": "`null` for a name",
  "null by part": "`null` for a part"
}

const cell = (text: string): string => text.replaceAll("|", "\\|")

const inputRow = (name: string, { text, usual = "" }: Input): ReadonlyArray<string> => [
  `\`${name}\``,
  text,
  usual
]

const table = (
  heading: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string =>
  [heading, heading.map(() => "---"), ...rows]
    .map((row) => `| ${row.map(cell).join(" | ")} |`)
    .join("\n")

const settingTable = (settings: Readonly<Record<string, Setting>>): string =>
  table(
    ["setting", "what it does", "default", "how to unset it", "what the history records"],
    Object.entries(settings).map(([name, setting]) => [
      ...inputRow(name, setting),
      removals[setting.removal],
      setting.history
    ])
  )

/** Returns docs/reference/settings.md. */
export const settingsReference = (): string =>
  [
    "# Settings",
    "",
    "This page is for anyone who configures endpoints and tenants: every setting, its default, how to unset it, and what the history records of it. `PUT` and `PATCH` of an endpoint take these names ([openapi.json](openapi.json)); [commands.md](commands.md) has the flags of `petrel endpoint add` and `set` and of `petrel tenant set`. A change leaves all settings that it does not name unchanged. `npm run reference` makes this page from the tables in `src/domain/settings`.",
    "",
    "## Of an endpoint",
    "",
    settingTable(endpointSettings),
    "",
    "A request may also have these, which change stored data under another name:",
    "",
    table(
      ["input", "what it does", "default"],
      Object.entries(endpointRequests).map(([name, input]) => inputRow(name, input))
    ),
    "",
    "## Of a tenant, or of the system",
    "",
    settingTable(tenantSettings),
    ""
  ].join("\n")
