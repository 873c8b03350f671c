/** The built-in user that owns agents which programs create for no particular user. */
export const OPERATOR_USER_ID = 'operator';
