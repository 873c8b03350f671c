import { checkMailServer, MailServerError } from '../accounts/mail-delivery/mail-transport.js';
import { mailSettings } from '../accounts/mail/settings.js';
import { checkOf, failure, ok, warning, type Check } from './check.js';

/** Milliseconds for each step of SMTP. */
const STEP_MS = 4_000;

/** Checks that the mail server accepts our sign-in; sends nothing. */
export const mailCheck: Check = checkOf('mail', { mail: mailSettings }, async ({ mail }) => {
  const { available, smtpUrl } = mail;
  if (smtpUrl === undefined) {
    return available
      ? [ok('Mails are logged instead of sent: SMTP_URL is not set.')]
      : [warning('No mail is sent, and no password can be reset by mail: set SMTP_URL.')];
  }
  const place = new URL(smtpUrl).host;
  try {
    await checkMailServer(smtpUrl, STEP_MS);
    return [ok(`The mail server at ${place} accepts connections of the platform.`)];
  } catch (error) {
    if (!(error instanceof MailServerError)) throw error;
    return [failure(`${error.message} (${place}): start it, or correct SMTP_URL.`)];
  }
});
