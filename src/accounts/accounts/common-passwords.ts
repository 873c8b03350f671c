/** Frequent passwords of eight letters or more (SecLists, Passwords/Common-Credentials), lower case. */
const COMMON = new Set(
  `00000000 01012011 0123456789 098765432 0987654321 1029384756 10203040 11111111 111111111 1111111111
  11223344 1122334455 112233445566 12121212 12131415 123123123 123123123a 1231231231 123321123 1234512345
  1234554321 12344321 123454321 12345678 123456780 123456789 1234567890 12345678910 123456789a 123456789q
  12345678a 12345678q 1234abcd 1234qwer 123abc123 123qweasd 123qweasdzxc 13131313 14141414 147258369
  147852369 159357456 159753456 1a2b3c4d 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx 1qaz2wsx3edc 1qazxsw2
  20202020 21212121 22222222 23232323 25252525 31415926 3.1415926 321321321 33333333 44444444 55555555
  66666666 77777777 78945612 789456123 87654321 88888888 9876543210 987654321 99999999 999999999 a1234567
  a12345678 a123456789 a1b2c3d4 a1s2d3f4 aa123456 aa12345678 aaaaaaaa abc12345 abc123456 abcd1234 abcdefgh
  abcdefg1 academia access14 admin123 admin1234 admin12345 administrator adobe123 alejandro alexande
  alexander alexandra anderson angelina anthony1 arsenal1 asd123456 asdasdasd asdf1234 asdfasdf asdfghjk
  asdfghjkl asdfjkl; asdqwe123 babygirl baseball baseball1 basketball batman123 benjamin bigdaddy blahblah
  bullshit butterfly caroline cas12345 challenge champion changeme changeme1 changeme123 charlie1 chelsea1
  chocolate christian christin christine christopher chocolat computer computer1 consumer cooldude corvette
  cowboys1 creative danielle default1 demo1234 diamond1 dolphins dragon123 drowssap electric elephant
  elizabeth einstein explorer facebook fernando firebird firewall flamengo football football1 forever1
  freedom1 friends1 garfield gateway1 godzilla goodluck google123 guardian hardcore hello123 hello1234
  hellohello helloworld iloveyou iloveyou1 iloveyou2 internet isabella jennifer jennifer1 jessica1 jonathan
  jordan23 justdoit justin12 kathleen killer123 lakers24 letmein1 letmein123 letmein! liverpool liverpool1
  logitech loveyou1 login123 loulou12 macintosh manchester marathon marino13 marlboro master12 master123
  maverick mercedes metallica michael1 michelle microsoft midnight minecraft mitchell monkey12 monkey123
  mustang1 myspace1 nicholas nintendo nirvana1 november nopassword p4ssw0rd p@ssw0rd p@ssword pa55word
  pa$$w0rd pakistan panther1 paradise passport passw0rd passw0rd1 password password! password. password0
  password01 password1 password1! password11 password12 password123 password1234 password2 password3
  password4 password5 password7 password8 password9 passwords patricia peekaboo phoenix1 photoshop platinum
  playstation pokemon1 police123 postgres princess princess1 profound purple12 q1w2e3r4 q1w2e3r4t5
  q1w2e3r4t5y6 q12345678 qazqazqaz qazwsx123 qazwsxed qazwsxedc qqqqqqqq qwaszx12 qwe123qwe qweasd123
  qweasdzx qweasdzxc qweqweqwe qwer1234 qwerasdf qwert123 qwert1234 qwert12345 qwerty11 qwerty12 qwerty123
  qwerty1234 qwerty12345 qwerty123456 qwertyui qwertyuiop qwertyuiop1 rainbow1 rangers1 redskins remember
  ronaldo7 root1234 rosebud1 samantha samsung1 scorpion scotland sebastian secret123 security sergey123
  services shannon1 shopping simpsons slipknot smashing snowball softball software spiderman spongebob
  starwars starwars1 steelers stephanie sunshine sunshine1 superman superman1 swordfish sysadmin target123
  temp1234 test1234 test12345 testtest tester123 thebeast thomas123 thunder1 tigger12 tinkerbell trinity1
  trustno1 trustnoone twilight undertaker username vacation valentina valentine veronica victoria voyager1
  warcraft warhammer welcome1 welcome12 welcome123 welcome! westside whatever whatever1 william1 wonderful
  wordpass xbox1234 xxxxxxxx yankees1 z1x2c3v4 zaq12wsx zaq1zaq1 zxcvbnm1 zxcvbnm123 zxcvzxcv zzzzzzzz`
    .split(/\s+/)
    .filter((each) => each.length >= 8),
);

/** Reports whether a password is among the most common ones, ignoring case. */
export const isCommonPassword = (password: string): boolean => COMMON.has(password.toLowerCase());
