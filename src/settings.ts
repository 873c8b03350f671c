import { accountSettings } from './accounts/accounts/settings.js';
import { agentSettings } from './agents/lifecycle/settings.js';
import { aiSettings } from './ai/routing/settings.js';
import { billingSettings } from './billing/settings.js';
import { chainSettings, foreignKeySettings } from './money/chain/settings.js';
import { cloneSettings } from './agents/clones/settings.js';
import { containerSettings } from './docker/containers/settings.js';
import { codeHostSettings } from './accounts/sign-in/code-host/settings.js';
import { databaseSettings } from './platform/database/settings.js';
import { area, variable } from './platform/environment/area.js';
import { readAreas, type Environment } from './platform/environment/read.js';
import { textAs } from './platform/environment/types.js';
import { farcasterSettings } from './accounts/sign-in/farcaster/settings.js';
import { emailSettings } from './agents/email/settings.js';
import { feedSettings } from './feeds/settings.js';
import { hostSettings } from './agents/hosts/settings.js';
import { httpSettings } from './platform/http/settings.js';
import { identityProviderSettings } from './accounts/sign-in/identity-provider/settings.js';
import { mailSettings } from './accounts/mail/settings.js';
import { notificationSettings } from './notifications/settings.js';
import { outboundSettings } from './platform/outbound/settings.js';
import { paymentSessionSettings } from './money/sessions/settings.js';
import { processSettings } from './platform/process/settings.js';
import { radioSettings } from './radio/settings.js';
import { retentionSettings } from './retention/settings.js';
import { secretsSettings } from './platform/secrets/settings.js';
import { temporalSettings } from './platform/temporal/settings.js';
import { videoSettings } from './videos/settings.js';
import { walletProviderSettings } from './money/wallets/provider/settings.js';
import { x402Settings } from './gateway/settings.js';
import { workspaceSettings } from './workspace/settings.js';

/** Settings read from the environment, in the order of the docs. */
export const AREAS = {
  http: httpSettings,
  database: databaseSettings,
  temporal: temporalSettings,
  containers: containerSettings,
  agents: agentSettings,
  hosts: hostSettings,
  accounts: accountSettings,
  identityProvider: identityProviderSettings,
  codeHost: codeHostSettings,
  secrets: secretsSettings,
  chain: chainSettings,
  paymentSessions: paymentSessionSettings,
  x402: x402Settings,
  walletProvider: walletProviderSettings,
  billing: billingSettings,
  clones: cloneSettings,
  farcaster: farcasterSettings,
  ai: aiSettings,
  mail: mailSettings,
  email: emailSettings,
  notifications: notificationSettings,
  outbound: outboundSettings,
  feeds: feedSettings,
  radio: radioSettings,
  videos: videoSettings,
  retention: retentionSettings,
  workspace: workspaceSettings,
  process: processSettings,
} as const;

/** Settings of the product by area. */
export type Settings = ReturnType<typeof loadPaymentSettings>;

/**
 * Reads and checks the whole environment once.
 *
 * @throws SettingsError with every problem found.
 */
export function loadSettings(env: Environment = process.env): Settings {
  return readAreas({ ...AREAS, foreign: foreignSettings, foreignKey: foreignKeySettings }, env);
}

/** Reads the settings of the only process that signs with the operator's key. @throws SettingsError */
export function loadPaymentSettings(env: Environment = process.env) {
  return readAreas({ ...AREAS, foreign: foreignSettings }, env);
}

/**
 * Rejects an environment with the operator's key, for programs that read only some settings. @throws
 * SettingsError
 */
export function refuseOperatorKey(env: Environment = process.env): void {
  readAreas({ foreignKey: foreignKeySettings }, env);
}

/** Settings of the web summarizer, which needs neither a database nor a key. */
const SUMMARIZER_AREAS = {
  http: httpSettings,
  chain: chainSettings,
  outbound: outboundSettings,
  process: processSettings,
} as const;

/**
 * Reads the settings of the web summarizer's process.
 *
 * @throws SettingsError with every problem found.
 */
export function loadSummarizerSettings(env: Environment = process.env) {
  const standIn = { INTERNAL_API_KEY: 'this process opens no backend API' };
  const areas = { ...SUMMARIZER_AREAS, foreign: foreignSettings, foreignKey: foreignKeySettings };
  return readAreas(areas, { ...standIn, ...env });
}

/** Variables that must not be set for a serving process: an intruder could read them. */
const foreignSettings = area('', () => ({
  ownerUrl: variable(
    'DATABASE_OWNER_URL',
    textAs('left to scripts/migrate.js: no API or worker has it', () => undefined).optional(),
    '',
  ),
}));
