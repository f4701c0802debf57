import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { operatorNamed } from "../../../operations/caller.ts"
import {
  Diagnosis,
  diagnoseEndpoint
} from "../../../operations/endpoints/diagnosis/diagnose-endpoint.ts"
import { endpointArgument, thisUser } from "../../flags/shared.ts"
import { screenWidth } from "../../format/screen.ts"
import { connected, report } from "../../root-command.ts"
import { coloured } from "../../terminal/stdout.ts"
import { diagnosisLines } from "./diagnosis-view.ts"

const encode = Schema.encodeSync(Diagnosis)

export const diagnose = Command.make(
  "diagnose",
  { name: endpointArgument },
  Effect.fnUntraced(function* ({ name }) {
    const found = yield* diagnoseEndpoint(name, operatorNamed(thisUser())).pipe(
      Effect.provide(connected)
    )
    const view = { colour: coloured(), width: screenWidth() }
    yield* report(encode(found), diagnosisLines(found, view).join("\n"))
  })
).pipe(
  Command.withDescription(
    "Find out why an endpoint gets nothing or fails, and what to do: looks at its state, events and failures, and tries the way to its receiver without sending anything"
  ),
  Command.withExamples([{ command: "petrel endpoint diagnose acme/billing" }])
)
