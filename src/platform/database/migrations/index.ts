import { migration as accounts } from './001-accounts.js';
import { migration as signIn } from './002-sign-in.js';
import { migration as agents } from './003-agents.js';
import { migration as hosts } from './004-hosts.js';
import { migration as notifications } from './005-notifications.js';
import { migration as usage } from './006-usage.js';
import { migration as records } from './007-records.js';
import { migration as accountDeletion } from './008-account-deletion.js';
import { migration as mail } from './009-mail.js';
import { migration as ledger } from './010-ledger.js';
import { migration as payments } from './011-payments.js';
import { migration as wallets } from './012-wallets.js';
import { migration as clones } from './013-clones.js';
import { migration as paymentSessions } from './014-payment-sessions.js';
import { migration as splits } from './015-splits.js';
import { migration as rowChanges } from './016-row-changes.js';
import { migration as grantedCredits } from './017-granted-credits.js';
import { migration as keyScopes } from './018-key-scopes.js';
import { migration as securityEventIds } from './019-security-event-ids.js';
import { migration as intruders } from './020-intruders.js';
import { migration as gas } from './021-gas.js';
import { migration as keptAnswers } from './022-kept-answers.js';
import { migration as retentionOfPayments } from './023-retention-of-payments.js';
import { migration as cachedTokens } from './024-cached-tokens.js';
import { migration as subscriptions } from './025-subscriptions.js';
import { migration as x402Payments } from './026-x402-payments.js';
import { migration as providerKeys } from './027-provider-keys.js';
import { migration as checkouts } from './028-checkouts.js';
import { migration as undergroundEvents } from './029-underground-events.js';
import { migration as resaleDelay } from './030-resale-delay.js';
import { migration as bus } from './031-bus.js';
import { migration as plans } from './032-plans.js';
import { migration as toolUsage } from './033-tool-usage.js';
import { migration as verifications } from './034-verifications.js';
import { migration as dataFeeds } from './035-data-feeds.js';
import { migration as swarms } from './036-swarms.js';
import { migration as scheduledTasks } from './037-scheduled-tasks.js';
import { migration as metrics } from './038-metrics.js';
import { migration as installations } from './039-installations.js';
import { migration as skills } from './040-skills.js';
import { migration as videos } from './041-videos.js';
import { migration as agentEmails } from './042-agent-emails.js';
import { migration as radio } from './043-radio.js';
import { migration as fleet } from './044-fleet.js';
import { migration as withdrawnSkills } from './045-withdrawn-skills.js';
import { migration as unreadEmails } from './046-unread-emails.js';
import { migration as coveringIndexes } from './047-covering-indexes.js';
import { migration as platformTools } from './048-platform-tools.js';
import { migration as closingBeforeOpening } from './049-closing-before-opening.js';
import type { Migration } from './migration.js';

interface ListedMigration {
  readonly name: string;
  readonly migration: Migration;
  /** True if older releases cannot work with the schema: their processes refuse to start. */
  readonly breaksOlder?: true;
}

/**
 * Every migration in order, numbered without gaps; a new one is appended. A list, not a folder read at run
 * time, so that it survives bundling.
 */
export const MIGRATIONS: readonly ListedMigration[] = [
  { name: '001-accounts', migration: accounts },
  { name: '002-sign-in', migration: signIn },
  { name: '003-agents', migration: agents },
  { name: '004-hosts', migration: hosts },
  { name: '005-notifications', migration: notifications },
  { name: '006-usage', migration: usage },
  { name: '007-records', migration: records },
  { name: '008-account-deletion', migration: accountDeletion },
  { name: '009-mail', migration: mail },
  { name: '010-ledger', migration: ledger },
  { name: '011-payments', migration: payments },
  { name: '012-wallets', migration: wallets },
  { name: '013-clones', migration: clones },
  { name: '014-payment-sessions', migration: paymentSessions },
  { name: '015-splits', migration: splits },
  { name: '016-row-changes', migration: rowChanges },
  { name: '017-granted-credits', migration: grantedCredits },
  { name: '018-key-scopes', migration: keyScopes },
  { name: '019-security-event-ids', migration: securityEventIds },
  { name: '020-intruders', migration: intruders },
  { name: '021-gas', migration: gas },
  { name: '022-kept-answers', migration: keptAnswers },
  { name: '023-retention-of-payments', migration: retentionOfPayments },
  { name: '024-cached-tokens', migration: cachedTokens },
  { name: '025-subscriptions', migration: subscriptions, breaksOlder: true },
  { name: '026-x402-payments', migration: x402Payments },
  { name: '027-provider-keys', migration: providerKeys },
  { name: '028-checkouts', migration: checkouts },
  { name: '029-underground-events', migration: undergroundEvents },
  { name: '030-resale-delay', migration: resaleDelay },
  { name: '031-bus', migration: bus },
  { name: '032-plans', migration: plans },
  { name: '033-tool-usage', migration: toolUsage },
  { name: '034-verifications', migration: verifications },
  { name: '035-data-feeds', migration: dataFeeds },
  { name: '036-swarms', migration: swarms },
  { name: '037-scheduled-tasks', migration: scheduledTasks },
  { name: '038-metrics', migration: metrics },
  { name: '039-installations', migration: installations },
  { name: '040-skills', migration: skills },
  { name: '041-videos', migration: videos },
  { name: '042-agent-emails', migration: agentEmails },
  { name: '043-radio', migration: radio },
  { name: '044-fleet', migration: fleet },
  { name: '045-withdrawn-skills', migration: withdrawnSkills },
  { name: '046-unread-emails', migration: unreadEmails },
  { name: '047-covering-indexes', migration: coveringIndexes },
  { name: '048-platform-tools', migration: platformTools },
  { name: '049-closing-before-opening', migration: closingBeforeOpening },
];
