import { discordKind } from "./discord.ts"
import { genericHmacKind } from "./generic-hmac.ts"
import { githubKind } from "./github.ts"
import { gitlabKind } from "./gitlab.ts"
import { hubspotKind } from "./hubspot.ts"
import { type ProviderKind, provide, settingsProblems } from "./kind.ts"
import { linearKind } from "./linear.ts"
import { mailgunKind } from "./mailgun.ts"
import { metaKind } from "./meta.ts"
import { paddleKind } from "./paddle.ts"
import { paypalKind } from "./paypal.ts"
import type { Provider } from "./provider.ts"
import { sendgridKind } from "./sendgrid.ts"
import { InvalidProviderSettings, type ProviderSettings } from "./settings.ts"
import { shopifyKind } from "./shopify.ts"
import { slackKind } from "./slack.ts"
import { squareKind } from "./square.ts"
import { petrelKind, standardWebhooksKind } from "./standard-webhooks.ts"
import { stripeKind } from "./stripe.ts"
import { twilioKind } from "./twilio.ts"
import { xKind } from "./x.ts"
import { zoomKind } from "./zoom.ts"

export { discord } from "./discord.ts"
export { genericHmac } from "./generic-hmac.ts"
export type { GenericHmacScheme } from "./generic-hmac-scheme.ts"
export { github } from "./github.ts"
export { gitlab } from "./gitlab.ts"
export { hubspot } from "./hubspot.ts"
export { linear } from "./linear.ts"
export { mailgun } from "./mailgun.ts"
export { meta } from "./meta.ts"
export { paddle } from "./paddle.ts"
export { paypal } from "./paypal.ts"
export type {
  HandshakeAnswer,
  Provider,
  ProviderEvent,
  Reading,
  ReceivedRequest,
  Verification,
  VerificationProblem
} from "./provider.ts"
export { sendgrid } from "./sendgrid.ts"
export { InvalidProviderSettings, type ProviderSetting, type ProviderSettings } from "./settings.ts"
export { shopify } from "./shopify.ts"
export { slack } from "./slack.ts"
export { square } from "./square.ts"
export { petrel, standardWebhooks } from "./standard-webhooks.ts"
export { stripe } from "./stripe.ts"
export { twilio } from "./twilio.ts"
export { x } from "./x.ts"
export { zoom } from "./zoom.ts"

/** A provider by name, whose settings are only known when they are given. */
export interface KnownProvider extends Omit<ProviderKind, "make" | "problems"> {
  /** Returns what is wrong with settings and which are missing, as sentences that show no secret. */
  readonly problems: (settings: ProviderSettings) => ReadonlyArray<string>
  /** Throws InvalidProviderSettings. */
  readonly provide: (settings: ProviderSettings) => Provider
}

const known = <Settings extends ProviderSettings>(kind: ProviderKind<Settings>): KnownProvider => {
  const { make: _, ...described } = kind
  return {
    ...described,
    problems: (settings) => settingsProblems(kind, settings),
    // `provide` throws where they are not what this provider takes.
    provide: (settings) => provide(kind, settings as Settings)
  }
}

/** All providers, by name. */
export const providers: ReadonlyMap<string, KnownProvider> = new Map(
  [
    known(petrelKind),
    known(standardWebhooksKind),
    known(stripeKind),
    known(githubKind),
    known(gitlabKind),
    known(shopifyKind),
    known(slackKind),
    known(twilioKind),
    known(sendgridKind),
    known(paddleKind),
    known(paypalKind),
    known(squareKind),
    known(discordKind),
    known(linearKind),
    known(hubspotKind),
    known(zoomKind),
    known(mailgunKind),
    known(metaKind),
    known(xKind),
    known(genericHmacKind)
  ].map((one) => [one.name, one])
)

/**
 * Makes a provider by its name. Throws InvalidProviderSettings, also for a name that is unknown.
 *
 * @param name one of `providers`.
 */
export const provider = (name: string, settings: ProviderSettings): Provider => {
  const found = providers.get(name)
  if (found === undefined)
    throw new InvalidProviderSettings(name, [
      `there is no provider of this name: there are ${[...providers.keys()].join(", ")}`
    ])
  return found.provide(settings)
}
