import { Effect } from "effect"
import { Command } from "effect/cli"
import { print } from "../terminal/stdout.ts"

/** Prints the description of the HTTP API. */
export const openapi = Command.make(
  "openapi",
  {},
  Effect.fnUntraced(function* () {
    const { apiDocument } = yield* Effect.promise(() => import("../../api/document.ts"))
    yield* print(JSON.stringify(apiDocument(), undefined, 2))
  })
).pipe(
  Command.withDescription("Print the OpenAPI 3.1 document of the HTTP API"),
  Command.withExamples([{ command: "petrel openapi > petrel.json" }])
)
