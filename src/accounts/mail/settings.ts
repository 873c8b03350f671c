import { address } from '../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { textMatching } from '../../platform/environment/types.js';

export const mailSettings = area(
  'Mail',
  (mode) => ({
    smtpUrl: variable(
      'SMTP_URL',
      address(mode, 'smtp', 'smtps').optional(),
      'mail server that sends the mails of the platform, with user and password in the address; with `smtp`, a server on another machine must support STARTTLS unless the address has `?requireTLS=false`',
      { secret: true, whenUnset: 'none: mails are logged; in production, no mail is sent' },
    ),
    from: variable(
      'MAIL_FROM',
      textMatching(
        /^([^<>"\r\n]+<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/,
        'an address, or a name and an address in angle brackets',
      ).optional(),
      "sender of the platform's mails",
      { whenUnset: '`no-reply@` and the host of `WEB_URL`' },
    ),
  }),
  (values, { production }) => ({
    ...values,
    /** True if mails can be sent or, outside production, logged. */
    available: values.smtpUrl !== undefined || !production,
  }),
);

export type MailSettings = SettingsOf<typeof mailSettings>;
