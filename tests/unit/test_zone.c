/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones: points of Python's zoneinfo (3.11, tzdata 2025b) between 1900 and 2100,
 * hand-made TZif data for the rules of the footer, and damaged data.
 */
#include "lib/time/zone.h"

#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/time/civil.h"
#include "tests/unit/tap.h"

#define S INT64_C(1000000)

static const char *const zone_names[] = { "Europe/Berlin", "Europe/Prague", "America/New_York", "Asia/Kolkata",
	"Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca",
	"Europe/Dublin" };
#define ZONES_COUNT (sizeof(zone_names) / sizeof(zone_names[0]))

/* clang-format off */
/* From Python's zoneinfo: zone, seconds since the epoch, offset in seconds. */
static const struct {
	int zone;
	int64_t utc_s;
	int offset_s;
} offsets[] = {
	{ 0, -1839848230, 3600 }, { 0, -1286867124, 3600 }, { 0, -1175349084, 3600 }, { 0, -654130801, 3600 },
	{ 0, -654130800, 7200 }, { 0, -412953061, 3600 }, { 0, 157741134, 3600 }, { 0, 219616335, 3600 },
	{ 0, 294066653, 3600 }, { 0, 496803599, 7200 }, { 0, 496803600, 3600 }, { 0, 670381199, 3600 },
	{ 0, 670381200, 7200 }, { 0, 1130633999, 7200 }, { 0, 1130634000, 3600 }, { 0, 2121901199, 3600 },
	{ 0, 2121901200, 7200 }, { 0, 2140045199, 7200 }, { 0, 2140045200, 3600 }, { 0, 2153350799, 3600 },
	{ 0, 2153350800, 7200 }, { 0, 2172099599, 7200 }, { 0, 2172099600, 3600 }, { 0, 2339856182, 3600 },
	{ 0, 2519254799, 7200 }, { 0, 2519254800, 3600 }, { 0, 2866409999, 7200 }, { 0, 2866410000, 3600 },
	{ 0, 3099862799, 3600 }, { 0, 3099862800, 7200 }, { 0, 4078429199, 3600 }, { 0, 4078429200, 7200 },
	{ 0, 4096573199, 7200 }, { 0, 4096573200, 3600 }, { 1, -1402088891, 3600 }, { 1, 74732258, 3600 },
	{ 1, 214954563, 3600 }, { 1, 449637169, 7200 }, { 1, 849503650, 3600 }, { 1, 859683599, 3600 },
	{ 1, 859683600, 7200 }, { 1, 985481999, 3600 }, { 1, 985482000, 7200 }, { 1, 1067129999, 7200 },
	{ 1, 1067130000, 3600 }, { 1, 1129183384, 7200 }, { 1, 1364691599, 3600 }, { 1, 1364691600, 7200 },
	{ 1, 2121901199, 3600 }, { 1, 2121901200, 7200 }, { 1, 2140045199, 7200 }, { 1, 2140045200, 3600 },
	{ 1, 2153350799, 3600 }, { 1, 2153350800, 7200 }, { 1, 2172099599, 7200 }, { 1, 2172099600, 3600 },
	{ 1, 2248304399, 3600 }, { 1, 2248304400, 7200 }, { 1, 2392851599, 7200 }, { 1, 2392851600, 3600 },
	{ 1, 2504439634, 7200 }, { 1, 2528599394, 3600 }, { 1, 3289165199, 3600 }, { 1, 3289165200, 7200 },
	{ 1, 4078429199, 3600 }, { 1, 4078429200, 7200 }, { 1, 4096573199, 7200 }, { 1, 4096573200, 3600 },
	{ 2, -986752801, -14400 }, { 2, -986752800, -18000 }, { 2, -413164952, -18000 }, { 2, 420015599, -18000 },
	{ 2, 420015600, -14400 }, { 2, 877845599, -14400 }, { 2, 877845600, -18000 }, { 2, 923954848, -14400 },
	{ 2, 1042906751, -18000 }, { 2, 1549698119, -18000 }, { 2, 2000830136, -14400 }, { 2, 2120108399, -18000 },
	{ 2, 2120108400, -14400 }, { 2, 2140667999, -14400 }, { 2, 2140668000, -18000 }, { 2, 2152162799, -18000 },
	{ 2, 2152162800, -14400 }, { 2, 2172722399, -14400 }, { 2, 2172722400, -18000 }, { 2, 2456373599, -14400 },
	{ 2, 2456373600, -18000 }, { 2, 2593067152, -18000 }, { 2, 2688620399, -18000 }, { 2, 2688620400, -14400 },
	{ 2, 2738747093, -14400 }, { 2, 3098674799, -18000 }, { 2, 3098674800, -14400 }, { 2, 3322661768, -14400 },
	{ 2, 4076636399, -18000 }, { 2, 4076636400, -14400 }, { 2, 4097195999, -14400 }, { 2, 4097196000, -18000 },
	{ 3, -2019705671, 19270 }, { 3, -2019705670, 19800 }, { 3, -891581401, 19800 }, { 3, -891581400, 23400 },
	{ 3, -872058601, 23400 }, { 3, -872058600, 19800 }, { 3, -862637401, 19800 }, { 3, -862637400, 23400 },
	{ 3, -764145001, 23400 }, { 3, -764145000, 19800 }, { 3, -249601814, 19800 }, { 3, 643523226, 19800 },
	{ 3, 803896502, 19800 }, { 3, 1321151269, 19800 }, { 3, 1398645374, 19800 }, { 3, 1848385622, 19800 },
	{ 3, 2346551691, 19800 }, { 3, 3308306991, 19800 }, { 4, -1577943677, 20476 }, { 4, -1577943676, 19800 },
	{ 4, -1494451046, 19800 }, { 4, -974478055, 19800 }, { 4, -500031280, 19800 }, { 4, -88593526, 19800 },
	{ 4, -76508740, 19800 }, { 4, 504901799, 19800 }, { 4, 504901800, 20700 }, { 4, 962257766, 20700 },
	{ 4, 3023173755, 20700 }, { 4, 3811027446, 20700 }, { 5, -2157178338, 36000 }, { 5, -1852572246, 36000 },
	{ 5, -1559167171, 36000 }, { 5, -1425832113, 36000 }, { 5, -1217918593, 36000 }, { 5, 619318793, 37800 },
	{ 5, 1475335799, 37800 }, { 5, 1475335800, 39600 }, { 5, 2027516399, 39600 }, { 5, 2027516400, 37800 },
	{ 5, 2027855050, 37800 }, { 5, 2091020399, 39600 }, { 5, 2091020400, 37800 }, { 5, 2122469999, 39600 },
	{ 5, 2122470000, 37800 }, { 5, 2138196599, 37800 }, { 5, 2138196600, 39600 }, { 5, 2153919599, 39600 },
	{ 5, 2153919600, 37800 }, { 5, 2169646199, 37800 }, { 5, 2169646200, 39600 }, { 5, 2563973999, 39600 },
	{ 5, 2563974000, 37800 }, { 5, 3195385199, 39600 }, { 5, 3195385200, 37800 }, { 5, 3653220599, 37800 },
	{ 5, 3653220600, 39600 }, { 5, 3719961417, 39600 }, { 5, 3842522999, 37800 }, { 5, 3842523000, 39600 },
	{ 5, 4078997999, 39600 }, { 5, 4078998000, 37800 }, { 5, 4094724599, 37800 }, { 5, 4094724600, 39600 },
	{ 6, -1390327043, -41400 }, { 6, -631110601, -41400 }, { 6, -631110600, -39600 }, { 6, -516256211, -39600 },
	{ 6, -499292765, -39600 }, { 6, -489100794, -39600 }, { 6, -316510799, -39600 }, { 6, 193065032, -39600 },
	{ 6, 1316872799, -39600 }, { 6, 1316872800, -36000 }, { 6, 1396706399, 50400 }, { 6, 1396706400, 46800 },
	{ 6, 1491055199, 50400 }, { 6, 1491055200, 46800 }, { 6, 1522504799, 50400 }, { 6, 1522504800, 46800 },
	{ 6, 1538229599, 46800 }, { 6, 1538229600, 50400 }, { 6, 1617458399, 50400 }, { 6, 1617458400, 46800 },
	{ 6, 2020126349, 46800 }, { 6, 4047248349, 46800 }, { 7, -1175374801, -10800 }, { 7, -1175374800, -7200 },
	{ 7, -593095990, -7200 }, { 7, -531352801, -7200 }, { 7, -531352800, -10800 }, { 7, -172523758, -10800 },
	{ 7, -99954001, -10800 }, { 7, -99954000, -7200 }, { 7, 377780623, -10800 }, { 7, 515779591, -10800 },
	{ 7, 856058399, -7200 }, { 7, 856058400, -10800 }, { 7, 1203213599, -7200 }, { 7, 1203213600, -10800 },
	{ 7, 1266717599, -7200 }, { 7, 1266717600, -10800 }, { 7, 1361066399, -7200 }, { 7, 1361066400, -10800 },
	{ 7, 1894715132, -10800 }, { 7, 2387981597, -10800 }, { 7, 2581418051, -10800 }, { 7, 2979128476, -10800 },
	{ 8, -2109793421, -1820 }, { 8, -1579335701, 0 }, { 8, -1515615250, 0 }, { 8, -1327597066, 0 },
	{ 8, -655273803, 0 }, { 8, 8651074, 0 }, { 8, 59859448, 0 }, { 8, 231292799, 0 }, { 8, 231292800, 3600 },
	{ 8, 271033199, 3600 }, { 8, 271033200, 0 }, { 8, 763372406, 0 }, { 8, 1243814399, 0 },
	{ 8, 1243814400, 3600 }, { 8, 1348970399, 3600 }, { 8, 1348970400, 0 }, { 8, 1490493599, 0 },
	{ 8, 1490493600, 3600 }, { 8, 1529200799, 0 }, { 8, 1529200800, 3600 }, { 8, 1679191199, 3600 },
	{ 8, 1679191200, 0 }, { 9, -1235150107, 0 }, { 9, -969228001, 0 }, { 9, -969228000, 3600 },
	{ 9, -163634401, 3600 }, { 9, -163634400, 0 }, { 9, 14252600, 3600 }, { 9, 386125199, 0 },
	{ 9, 386125200, 3600 }, { 9, 688525199, 3600 }, { 9, 688525200, 0 }, { 9, 1253092370, 3600 },
	{ 9, 1305724439, 3600 }, { 9, 1453024010, 0 }, { 9, 1459040399, 0 }, { 9, 1459040400, 3600 },
	{ 9, 1540688399, 3600 }, { 9, 1540688400, 0 }, { 9, 2121901199, 0 }, { 9, 2121901200, 3600 },
	{ 9, 2140045199, 3600 }, { 9, 2140045200, 0 }, { 9, 2153350799, 0 }, { 9, 2153350800, 3600 },
	{ 9, 2172099599, 3600 }, { 9, 2172099600, 0 }, { 9, 2771456399, 3600 }, { 9, 2771456400, 0 },
	{ 9, 3043935170, 3600 }, { 9, 3501878850, 0 }, { 9, 3613107982, 3600 }, { 9, 4078429199, 0 },
	{ 9, 4078429200, 3600 }, { 9, 4096573199, 3600 }, { 9, 4096573200, 0 },
};

/*
 * From Python's zoneinfo: zone, local seconds, earlier instant, how much later the later one is, enum wm_local_kind. Points that later
 * releases of tzdata moved (Sao Paulo in 1966) are left out: they are right or wrong by the system's release.
 */
static const struct {
	int zone;
	int64_t local_s, utc_s;
	int later_s;
	enum wm_local_kind kind;
} locals[] = {
	{ 0, 1711850399, 1711846799, 0, 0 }, { 0, 1711850400, 1711846800, 0, 2 },
	{ 0, 1711852200, 1711848600, 0, 2 }, { 0, 1711853999, 1711850399, 0, 2 },
	{ 0, 1711854000, 1711846800, 0, 0 }, { 0, 401853599, 401846399, 0, 0 }, { 0, 401853600, 401846400, 3600, 1 },
	{ 0, 401855400, 401848200, 3600, 1 }, { 0, 401857199, 401849999, 3600, 1 },
	{ 0, 401857200, 401853600, 0, 0 }, { 0, 3118615199, 3118607999, 0, 0 },
	{ 0, 3118615200, 3118608000, 3600, 1 }, { 0, 3118617000, 3118609800, 3600, 1 },
	{ 0, 3118618799, 3118611599, 3600, 1 }, { 0, 3118618800, 3118615200, 0, 0 },
	{ 0, -639007201, -639014401, 0, 0 }, { 0, -639007200, -639014400, 3600, 1 },
	{ 0, -639005400, -639012600, 3600, 1 }, { 0, -639003601, -639010801, 3600, 1 },
	{ 0, -639003600, -639007200, 0, 0 }, { 0, 1698544799, 1698537599, 0, 0 },
	{ 0, 1698544800, 1698537600, 3600, 1 }, { 0, 1698546600, 1698539400, 3600, 1 },
	{ 0, 1698548399, 1698541199, 3600, 1 }, { 0, 1698548400, 1698544800, 0, 0 },
	{ 0, -670456801, -670464001, 0, 0 }, { 0, -670456800, -670464000, 3600, 1 },
	{ 0, -670455000, -670462200, 3600, 1 }, { 0, -670453201, -670460401, 3600, 1 },
	{ 0, -670453200, -670456800, 0, 0 }, { 1, 3668378399, 3668374799, 0, 0 },
	{ 1, 3668378400, 3668374800, 0, 2 }, { 1, 3668380200, 3668376600, 0, 2 },
	{ 1, 3668381999, 3668378399, 0, 2 }, { 1, 3668382000, 3668374800, 0, 0 },
	{ 1, 3573424799, 3573421199, 0, 0 }, { 1, 3573424800, 3573421200, 0, 2 },
	{ 1, 3573426600, 3573423000, 0, 2 }, { 1, 3573428399, 3573424799, 0, 2 },
	{ 1, 3573428400, 3573421200, 0, 0 }, { 1, 2834359199, 2834351999, 0, 0 },
	{ 1, 2834359200, 2834352000, 3600, 1 }, { 1, 2834361000, 2834353800, 3600, 1 },
	{ 1, 2834362799, 2834355599, 3600, 1 }, { 1, 2834362800, 2834359200, 0, 0 },
	{ 1, 2329351199, 2329343999, 0, 0 }, { 1, 2329351200, 2329344000, 3600, 1 },
	{ 1, 2329353000, 2329345800, 3600, 1 }, { 1, 2329354799, 2329347599, 3600, 1 },
	{ 1, 2329354800, 2329351200, 0, 0 }, { 1, 1919296799, 1919289599, 0, 0 },
	{ 1, 1919296800, 1919289600, 3600, 1 }, { 1, 1919298600, 1919291400, 3600, 1 },
	{ 1, 1919300399, 1919293199, 3600, 1 }, { 1, 1919300400, 1919296800, 0, 0 },
	{ 1, 1364695199, 1364691599, 0, 0 }, { 1, 1364695200, 1364691600, 0, 2 },
	{ 1, 1364697000, 1364693400, 0, 2 }, { 1, 1364698799, 1364695199, 0, 2 },
	{ 1, 1364698800, 1364691600, 0, 0 }, { 2, 2404346399, 2404364399, 0, 0 },
	{ 2, 2404346400, 2404364400, 0, 2 }, { 2, 2404348200, 2404366200, 0, 2 },
	{ 2, 2404349999, 2404367999, 0, 2 }, { 2, 2404350000, 2404364400, 0, 0 },
	{ 2, 1856998799, 1857013199, 0, 0 }, { 2, 1856998800, 1857013200, 3600, 1 },
	{ 2, 1857000600, 1857015000, 3600, 1 }, { 2, 1857002399, 1857016799, 3600, 1 },
	{ 2, 1857002400, 1857020400, 0, 0 }, { 2, -1315173601, -1315155601, 0, 0 },
	{ 2, -1315173600, -1315155600, 0, 2 }, { 2, -1315171800, -1315153800, 0, 2 },
	{ 2, -1315170001, -1315152001, 0, 2 }, { 2, -1315170000, -1315155600, 0, 0 },
	{ 2, 3855866399, 3855884399, 0, 0 }, { 2, 3855866400, 3855884400, 0, 2 },
	{ 2, 3855868200, 3855886200, 0, 2 }, { 2, 3855869999, 3855887999, 0, 2 },
	{ 2, 3855870000, 3855884400, 0, 0 }, { 2, -1018220401, -1018206001, 0, 0 },
	{ 2, -1018220400, -1018206000, 3600, 1 }, { 2, -1018218600, -1018204200, 3600, 1 },
	{ 2, -1018216801, -1018202401, 3600, 1 }, { 2, -1018216800, -1018198800, 0, 0 },
	{ 2, 2961363599, 2961377999, 0, 0 }, { 2, 2961363600, 2961378000, 3600, 1 },
	{ 2, 2961365400, 2961379800, 3600, 1 }, { 2, 2961367199, 2961381599, 3600, 1 },
	{ 2, 2961367200, 2961385200, 0, 0 }, { 3, -862617601, -862637401, 0, 0 },
	{ 3, -862617600, -862637400, 0, 2 }, { 3, -862615800, -862635600, 0, 2 },
	{ 3, -862614001, -862633801, 0, 2 }, { 3, -862614000, -862637400, 0, 0 },
	{ 3, -872038801, -872062201, 0, 0 }, { 3, -872038800, -872062200, 3600, 1 },
	{ 3, -872037000, -872060400, 3600, 1 }, { 3, -872035201, -872058601, 3600, 1 },
	{ 3, -872035200, -872055000, 0, 0 }, { 3, -2019686401, -2019705671, 0, 0 },
	{ 3, -2019686400, -2019705670, 0, 2 }, { 3, -2019686135, -2019705405, 0, 2 },
	{ 3, -2019685871, -2019705141, 0, 2 }, { 3, -2019685870, -2019705670, 0, 0 },
	{ 3, -891561601, -891581401, 0, 0 }, { 3, -891561600, -891581400, 0, 2 },
	{ 3, -891559800, -891579600, 0, 2 }, { 3, -891558001, -891577801, 0, 2 },
	{ 3, -891558000, -891581400, 0, 0 }, { 3, -764125201, -764148601, 0, 0 },
	{ 3, -764125200, -764148600, 3600, 1 }, { 3, -764123400, -764146800, 3600, 1 },
	{ 3, -764121601, -764145001, 3600, 1 }, { 3, -764121600, -764141400, 0, 0 },
	{ 4, 504921599, 504901799, 0, 0 }, { 4, 504921600, 504901800, 0, 2 }, { 4, 504922050, 504902250, 0, 2 },
	{ 4, 504922499, 504902699, 0, 2 }, { 4, 504922500, 504901800, 0, 0 }, { 4, -1577923877, -1577944353, 0, 0 },
	{ 4, -1577923876, -1577944352, 676, 1 }, { 4, -1577923538, -1577944014, 676, 1 },
	{ 4, -1577923201, -1577943677, 676, 1 }, { 4, -1577923200, -1577943000, 0, 0 },
	{ 5, 1491096599, 1491056999, 0, 0 }, { 5, 1491096600, 1491057000, 1800, 1 },
	{ 5, 1491097500, 1491057900, 1800, 1 }, { 5, 1491098399, 1491058799, 1800, 1 },
	{ 5, 1491098400, 1491060600, 0, 0 }, { 5, 372823199, 372785399, 0, 0 }, { 5, 372823200, 372785400, 0, 2 },
	{ 5, 372825000, 372787200, 0, 2 }, { 5, 372826799, 372788999, 0, 2 }, { 5, 372826800, 372785400, 0, 0 },
	{ 5, 941335199, 941297399, 0, 0 }, { 5, 941335200, 941297400, 0, 2 }, { 5, 941336100, 941298300, 0, 2 },
	{ 5, 941336999, 941299199, 0, 2 }, { 5, 941337000, 941297400, 0, 0 }, { 5, 2043280799, 2043242999, 0, 0 },
	{ 5, 2043280800, 2043243000, 0, 2 }, { 5, 2043281700, 2043243900, 0, 2 },
	{ 5, 2043282599, 2043244799, 0, 2 }, { 5, 2043282600, 2043243000, 0, 0 },
	{ 5, 2501112599, 2501072999, 0, 0 }, { 5, 2501112600, 2501073000, 1800, 1 },
	{ 5, 2501113500, 2501073900, 1800, 1 }, { 5, 2501114399, 2501074799, 1800, 1 },
	{ 5, 2501114400, 2501076600, 0, 0 }, { 5, 1838251799, 1838212199, 0, 0 },
	{ 5, 1838251800, 1838212200, 1800, 1 }, { 5, 1838252700, 1838213100, 1800, 1 },
	{ 5, 1838253599, 1838213999, 1800, 1 }, { 5, 1838253600, 1838215800, 0, 0 },
	{ 6, 1301713199, 1301749199, 0, 0 }, { 6, 1301713200, 1301749200, 3600, 1 },
	{ 6, 1301715000, 1301751000, 3600, 1 }, { 6, 1301716799, 1301752799, 3600, 1 },
	{ 6, 1301716800, 1301756400, 0, 0 }, { 6, 1396753199, 1396702799, 0, 0 },
	{ 6, 1396753200, 1396702800, 3600, 1 }, { 6, 1396755000, 1396704600, 3600, 1 },
	{ 6, 1396756799, 1396706399, 3600, 1 }, { 6, 1396756800, 1396710000, 0, 0 },
	{ 6, 1538276399, 1538229599, 0, 0 }, { 6, 1538276400, 1538229600, 0, 2 },
	{ 6, 1538278200, 1538231400, 0, 2 }, { 6, 1538279999, 1538233199, 0, 2 },
	{ 6, 1538280000, 1538229600, 0, 0 }, { 6, -631152001, -631110601, 0, 0 },
	{ 6, -631152000, -631110600, 0, 2 }, { 6, -631151100, -631109700, 0, 2 },
	{ 6, -631150201, -631108801, 0, 2 }, { 6, -631150200, -631110600, 0, 0 },
	{ 6, 1617505199, 1617454799, 0, 0 }, { 6, 1617505200, 1617454800, 3600, 1 },
	{ 6, 1617507000, 1617456600, 3600, 1 }, { 6, 1617508799, 1617458399, 3600, 1 },
	{ 6, 1617508800, 1617462000, 0, 0 }, { 6, -1861920185, -1861878969, 0, 0 },
	{ 6, -1861920184, -1861878968, 184, 1 }, { 6, -1861920092, -1861878876, 184, 1 },
	{ 6, -1861920001, -1861878785, 184, 1 }, { 6, -1861920000, -1861878600, 0, 0 },
	{ 7, 1108853999, 1108861199, 0, 0 }, { 7, 1108854000, 1108861200, 3600, 1 },
	{ 7, 1108855800, 1108863000, 3600, 1 }, { 7, 1108857599, 1108864799, 3600, 1 },
	{ 7, 1108857600, 1108868400, 0, 0 }, { 7, 1066521599, 1066532399, 0, 0 },
	{ 7, 1066521600, 1066532400, 0, 2 }, { 7, 1066523400, 1066534200, 0, 2 },
	{ 7, 1066525199, 1066535999, 0, 2 }, { 7, 1066525200, 1066532400, 0, 0 },
	{ 7, 1099353599, 1099364399, 0, 0 }, { 7, 1099353600, 1099364400, 0, 2 },
	{ 7, 1099355400, 1099366200, 0, 2 }, { 7, 1099357199, 1099367999, 0, 2 },
	{ 7, 1099357200, 1099364400, 0, 0 }, { 7, 750815999, 750826799, 0, 0 }, { 7, 750816000, 750826800, 0, 2 },
	{ 7, 750817800, 750828600, 0, 2 }, { 7, 750819599, 750830399, 0, 2 }, { 7, 750819600, 750826800, 0, 0 },
	{ 7, -560221201, -560214001, 0, 0 }, { 7, -560221200, -560214000, 3600, 1 },
	{ 7, -560219400, -560212200, 3600, 1 }, { 7, -560217601, -560210401, 3600, 1 },
	{ 7, -560217600, -560206800, 0, 0 }, { 7, -121136401, -121129201, 0, 0 },
	{ 8, -942019201, -942019201, 0, 0 }, { 8, -942019200, -942019200, 0, 2 },
	{ 8, -942017400, -942017400, 0, 2 }, { 8, -942015601, -942015601, 0, 2 },
	{ 8, -942015600, -942019200, 0, 0 }, { 8, 1495331999, 1495328399, 0, 0 },
	{ 8, 1495332000, 1495328400, 3600, 1 }, { 8, 1495333800, 1495330200, 3600, 1 },
	{ 8, 1495335599, 1495331999, 3600, 1 }, { 8, 1495335600, 1495335600, 0, 0 },
	{ 8, 1376099999, 1376099999, 0, 0 }, { 8, 1376100000, 1376100000, 0, 2 },
	{ 8, 1376101800, 1376101800, 0, 2 }, { 8, 1376103599, 1376103599, 0, 2 },
	{ 8, 1376103600, 1376100000, 0, 0 }, { 8, 1212278399, 1212278399, 0, 0 },
	{ 8, 1212278400, 1212278400, 0, 2 }, { 8, 1212280200, 1212280200, 0, 2 },
	{ 8, 1212281999, 1212281999, 0, 2 }, { 8, 1212282000, 1212278400, 0, 0 },
	{ 8, 1437271199, 1437271199, 0, 0 }, { 8, 1437271200, 1437271200, 0, 2 },
	{ 8, 1437273000, 1437273000, 0, 2 }, { 8, 1437274799, 1437274799, 0, 2 },
	{ 8, 1437274800, 1437271200, 0, 0 }, { 8, 1560045599, 1560045599, 0, 0 },
	{ 8, 1560045600, 1560045600, 0, 2 }, { 8, 1560047400, 1560047400, 0, 2 },
	{ 8, 1560049199, 1560049199, 0, 2 }, { 8, 1560049200, 1560045600, 0, 0 },
	{ 9, -1473631201, -1473631201, 0, 0 }, { 9, -1473631200, -1473631200, 0, 2 },
	{ 9, -1473629400, -1473629400, 0, 2 }, { 9, -1473627601, -1473627601, 0, 2 },
	{ 9, -1473627600, -1473631200, 0, 0 }, { 9, 846377999, 846374399, 0, 0 },
	{ 9, 846378000, 846374400, 3600, 1 }, { 9, 846379800, 846376200, 3600, 1 },
	{ 9, 846381599, 846377999, 3600, 1 }, { 9, 846381600, 846381600, 0, 0 }, { 9, 2392851599, 2392847999, 0, 0 },
	{ 9, 2392851600, 2392848000, 3600, 1 }, { 9, 2392853400, 2392849800, 3600, 1 },
	{ 9, 2392855199, 2392851599, 3600, 1 }, { 9, 2392855200, 2392855200, 0, 0 },
	{ 9, 670381199, 670381199, 0, 0 }, { 9, 670381200, 670381200, 0, 2 }, { 9, 670383000, 670383000, 0, 2 },
	{ 9, 670384799, 670384799, 0, 2 }, { 9, 670384800, 670381200, 0, 0 }, { 9, 152071199, 152067599, 0, 0 },
	{ 9, 152071200, 152067600, 3600, 1 }, { 9, 152073000, 152069400, 3600, 1 },
	{ 9, 152074799, 152071199, 3600, 1 }, { 9, 152074800, 152074800, 0, 0 }, { 9, 3465766799, 3465763199, 0, 0 },
	{ 9, 3465766800, 3465763200, 3600, 1 }, { 9, 3465768600, 3465765000, 3600, 1 },
	{ 9, 3465770399, 3465766799, 3600, 1 }, { 9, 3465770400, 3465770400, 0, 0 },
};
/* clang-format on */

static struct wm_zone *
open_zone(const char *name)
{
	struct wm_err err = { 0 };
	struct wm_zone *zone = wm_zone_open(wm_span_of(name), &err);

	if (zone == NULL) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return zone;
}

static void
test_recorded(void)
{
	struct wm_zone *zones[ZONES_COUNT];
	size_t bad = 0;

	for (size_t i = 0; i < ZONES_COUNT; i++)
		zones[i] = open_zone(zone_names[i]);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		int64_t got_us = wm_zone_offset_us(zones[offsets[i].zone], offsets[i].utc_s * S);

		if (got_us != offsets[i].offset_s * S && bad++ == 0)
			printf("#   %s at %" PRId64 ": got %" PRId64 ", want %d\n", zone_names[offsets[i].zone],
				offsets[i].utc_s, got_us / S, offsets[i].offset_s);
	}
	tap_int((int64_t)bad, 0, "offsets as Python's zoneinfo has them");

	bad = 0;
	for (size_t i = 0; i < sizeof(locals) / sizeof(locals[0]); i++) {
		const struct wm_zone *zone = zones[locals[i].zone];
		enum wm_local_kind kind, kind_later;
		int64_t earlier_us = wm_zone_from_local(zone, locals[i].local_s * S, WM_REPEATED_EARLIER, &kind);
		int64_t later_us = wm_zone_from_local(zone, locals[i].local_s * S, WM_REPEATED_LATER, &kind_later);

		if ((earlier_us != locals[i].utc_s * S || later_us - earlier_us != locals[i].later_s * S ||
			    kind != locals[i].kind || kind_later != kind) &&
			bad++ == 0)
			printf("#   %s local %" PRId64 ": got %" PRId64 " and %" PRId64 ", kind %d\n",
				zone_names[locals[i].zone], locals[i].local_s, earlier_us / S, later_us / S, (int)kind);
	}
	tap_int((int64_t)bad, 0, "local times as Python's zoneinfo has them");
	for (size_t i = 0; i < ZONES_COUNT; i++)
		wm_zone_close(zones[i]);
}

static bool
means_once(const struct wm_zone *zone, int64_t local_us, int64_t offset_us)
{
	enum wm_local_kind kind;

	return wm_zone_from_local(zone, local_us, WM_REPEATED_EARLIER, &kind) == local_us - offset_us &&
		kind == WM_LOCAL_ONCE;
}

/* The clock reading of an instant means that instant, or one of two; a steady stretch is so at both its ends. */
static void
test_inverse(void)
{
	uint64_t random = 11;
	size_t bad = 0;

	for (size_t z = 0; z < ZONES_COUNT; z++) {
		struct wm_zone *zone = open_zone(zone_names[z]);

		for (int i = 0; i < 20000; i++) {
			int64_t time_us =
				(int64_t)(tap_random(&random) % UINT64_C(315000000000)) * S - INT64_C(62135000000) * S;
			int64_t offset_us = wm_zone_offset_us(zone, time_us);
			int64_t local_us = time_us + offset_us;
			struct wm_zone_steady steady;
			enum wm_local_kind kind;
			int64_t back_us = wm_zone_from_local(zone, local_us, WM_REPEATED_EARLIER, &kind);

			if (back_us != time_us && kind == WM_LOCAL_REPEATED)
				back_us = wm_zone_from_local(zone, local_us, WM_REPEATED_LATER, &kind);
			bool ok = back_us == time_us && kind != WM_LOCAL_SKIPPED;
			if (ok && wm_zone_steady(zone, local_us, &steady)) {
				int64_t first_us = steady.from_local_us == INT64_MIN ? local_us : steady.from_local_us;
				int64_t last_us = steady.to_local_us == INT64_MAX ? local_us : steady.to_local_us - 1;

				ok = steady.offset_us == offset_us && steady.from_local_us <= local_us &&
					steady.to_local_us > local_us && means_once(zone, first_us, offset_us) &&
					means_once(zone, local_us, offset_us) && means_once(zone, last_us, offset_us);
			}
			if (!ok && bad++ == 0)
				printf("#   %s at %" PRId64 "\n", zone_names[z], time_us);
		}
		wm_zone_close(zone);
	}
	tap_int((int64_t)bad, 0, "every instant comes back from its local time");
}

static void
add_be(struct wm_buf *out, int64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		wm_buf_add_byte(out, (char)((uint64_t)value >> (8 * i)));
}

/* TZif version 2: an empty first block, types UTC-3 and UTC-2, one transition to the second if count is 1. */
static void
make_tzif(struct wm_buf *out, int count, int64_t time_s, const char *footer)
{
	wm_buf_reset(out);
	for (int block = 0; block < 2; block++) {
		int64_t counts[6] = { 0, 0, 0, block * count, block == 0 ? 1 : 2, 4 };

		wm_buf_add(out, "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
		for (int i = 0; i < 6; i++)
			add_be(out, counts[i], 4);
		for (int i = 0; i < block * count; i++)
			add_be(out, time_s, 8);
		for (int i = 0; i < block * count; i++)
			add_be(out, 1, 1);
		for (int i = 0; i <= block; i++) {
			add_be(out, -3 * 3600 + i * 3600, 4);
			add_be(out, 0, 2);
		}
		wm_buf_add(out, "ABC", 4);
	}
	wm_buf_add_text(out, "\n");
	wm_buf_add_text(out, footer);
	wm_buf_add_text(out, "\n");
}

static int64_t
at(int64_t year, int month, int day, int hour)
{
	return wm_civil_days(year, month, day) * WM_US_PER_DAY + hour * 3600 * S;
}

/* Each offset is the footer's meaning, worked out by hand; hours. */
static void
test_footer(void)
{
	static const struct {
		const char *footer;
		int64_t year;
		int month, day, hour; /* UTC */
		int before, after;    /* offset a second before, and then */
	} cases[] = {
		{ "<-03>3", 2040, 1, 1, 0, -3, -3 },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2026, 3, 29, 1, 1, 2 },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2026, 10, 25, 1, 2, 1 },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2426, 3, 29, 1, 1, 2 }, /* 400 years on */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 9999, 3, 28, 1, 1, 2 }, /* as 1999 */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2369, 3, 30, 1, 1, 2 }, /* as 1969: the last years of a cycle */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2371, 10, 31, 1, 2, 1 },
		{ "EST5EDT,M3.2.0,M11.1.0", 2026, 3, 8, 7, -5, -4 },
		{ "EST5EDT,M3.2.0,M11.1.0", 2026, 11, 1, 6, -4, -5 },
		{ "IST-1GMT0,M10.5.0,M3.5.0/1", 2026, 3, 29, 1, 0, 1 },
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, 3, 29, 1, -2, -1 }, /* a negative hour: the evening before */
		{ "IST-2IDT,M3.4.4/26,M10.5.0", 2026, 3, 27, 0, 2, 3 },        /* hour 26: the day after */
		{ "<-03>3<-02>,J60/0,J300/0", 2024, 3, 1, 3, -3, -2 },         /* J skips 29 February */
		{ "<-03>3<-02>,J60/0,J300/0", 2025, 3, 1, 3, -3, -2 },
		{ "<-03>3<-02>,59/0,300/0", 2024, 2, 29, 3, -3, -2 }, /* n counts it */
		{ "<-03>3<-02>,59/0,300/0", 2025, 3, 1, 3, -3, -2 },
		{ "XXX3YYY2,0/0,J365/25", 2026, 1, 1, 3, -2, -2 }, /* summer all year, as RFC 8536 writes it */
		{ "XXX3YYY2,0/0,J365/25", 2026, 7, 1, 0, -2, -2 },
	};
	static const char *const broken[] = { "CET", "CE-1", "CET-1CEST", "CET-25", "CET-1CEST,M3.5.0",
		"CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
		"CET-1CEST,J0,J300", "CET-1CEST,366,300", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0x",
		"<CET-1", "CET-1:60" };
	struct wm_buf tzif;
	const char *why;

	wm_buf_init(&tzif, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t time_us = at(cases[i].year, cases[i].month, cases[i].day, cases[i].hour);

		/* With a transition before, and by the rule alone. */
		for (int count = 0; count < 2; count++) {
			make_tzif(&tzif, count, 0, cases[i].footer);
			struct wm_zone *zone = wm_zone_from_tzif(wm_buf_span(&tzif), &why);
			if (cases[i].footer[0] == '<' && strchr(cases[i].footer, ',') == NULL) {
				/* No rule to follow: the last type of the file stays. */
				tap_int(zone == NULL ? -99 : wm_zone_offset_us(zone, time_us) / (3600 * S), -3 + count,
					cases[i].footer);
			} else if (!tap_ok(zone != NULL &&
						   wm_zone_offset_us(zone, time_us - S) == cases[i].before * 3600 * S &&
						   wm_zone_offset_us(zone, time_us) == cases[i].after * 3600 * S,
					   "%s in %d", cases[i].footer, (int)cases[i].year)) {
				printf("#   got %" PRId64 " s and %" PRId64 " s\n",
					wm_zone_offset_us(zone, time_us - S) / S, wm_zone_offset_us(zone, time_us) / S);
			}
			wm_zone_close(zone);
		}
	}
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		make_tzif(&tzif, 1, 0, broken[i]);
		struct wm_zone *zone = wm_zone_from_tzif(wm_buf_span(&tzif), &why);

		tap_ok(zone == NULL, "broken rule %s", broken[i]);
		wm_zone_close(zone);
	}
	/* Transitions at the ends of 64 bits cannot leave the range of microseconds. */
	make_tzif(&tzif, 1, INT64_MIN, "");
	struct wm_zone *zone = wm_zone_from_tzif(wm_buf_span(&tzif), &why);
	tap_int(zone == NULL ? 0 : wm_zone_offset_us(zone, INT64_MIN) / S, -7200, "a transition before all time");
	wm_zone_close(zone);
	make_tzif(&tzif, 1, INT64_MAX, "");
	zone = wm_zone_from_tzif(wm_buf_span(&tzif), &why);
	tap_int(zone == NULL ? 0 : wm_zone_offset_us(zone, INT64_MAX) / S, -10800, "a transition after all time");
	wm_zone_close(zone);
	wm_buf_release(&tzif);
}

/* Cut and altered data: no zone or any zone, but no access outside of it (the sanitizers watch). */
static void
test_damaged(void)
{
	struct wm_buf tzif, copy;
	const char *why;
	uint64_t random = 5;
	int cut_accepted = 0, accepted = 0;

	wm_buf_init(&tzif, WM_BUF_UNBOUNDED);
	wm_buf_init(&copy, WM_BUF_UNBOUNDED);
	make_tzif(&tzif, 1, 0, "CET-1CEST,M3.5.0,M10.5.0/3");
	for (size_t len = 0; len < tzif.len; len++) {
		char *exact = wm_memdup(tzif.data, len);
		struct wm_zone *zone = wm_zone_from_tzif(wm_span(exact, len), &why);

		cut_accepted += zone != NULL;
		wm_zone_close(zone);
		free(exact);
	}
	tap_int(cut_accepted, 0, "data that is cut anywhere is no zone");
	for (int i = 0; i < 3000; i++) {
		wm_buf_reset(&copy);
		wm_buf_add(&copy, tzif.data, tzif.len);
		for (uint64_t n = 1 + tap_random(&random) % 4; n > 0; n--)
			copy.data[tap_random(&random) % copy.len] = (char)tap_random(&random);
		struct wm_zone *zone = wm_zone_from_tzif(wm_buf_span(&copy), &why);
		if (zone == NULL)
			continue;
		accepted++;
		for (int j = 0; j < 20; j++) {
			int64_t time_us = (int64_t)tap_random(&random);
			enum wm_local_kind kind;
			struct wm_zone_steady steady;

			(void)wm_zone_offset_us(zone, time_us);
			(void)wm_zone_from_local(zone, time_us, WM_REPEATED_LATER, &kind);
			(void)wm_zone_steady(zone, time_us, &steady);
		}
		wm_zone_close(zone);
	}
	tap_ok(accepted > 0, "altered data does no harm");
	wm_buf_release(&tzif);
	wm_buf_release(&copy);
}

static void
expect_failure(const char *name, const char *message)
{
	struct wm_err err = { 0 };
	struct wm_zone *zone = wm_zone_open(wm_span_of(name), &err);

	tap_text(zone != NULL ? "opened" : err.message, message, name);
	if (zone == NULL)
		tap_int(err.code, WM_ERR_USAGE, "is a usage error");
	wm_zone_close(zone);
}

static void
test_names(void)
{
	static const struct {
		const char *name;
		int offset_s;
		bool is_utc;
	} fixed[] = { { "UTC", 0, true }, { "Z", 0, true }, { "Etc/UTC", 0, true }, { "+00:00", 0, true },
		{ "+02:00", 7200, false }, { "-0330", -12600, false }, { "+02", 7200, false },
		{ "-23:59", -86340, false }, { "Etc/GMT+5", -18000, false } };

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		struct wm_zone *zone = open_zone(fixed[i].name);

		tap_int(wm_zone_offset_us(zone, 0) / S, fixed[i].offset_s, fixed[i].name);
		tap_int(wm_zone_is_utc(zone), fixed[i].is_utc, "whether it is UTC");
		tap_int(wm_zone_from_local(zone, 0, WM_REPEATED_EARLIER, NULL) / S, -fixed[i].offset_s,
			"local midnight");
		wm_zone_close(zone);
	}
	tap_int(wm_zone_offset_us(wm_zone_utc(), INT64_MIN), 0, "UTC at the beginning of time");
	expect_failure("Europe/Brelin", "unknown time zone 'Europe/Brelin': did you mean 'Europe/Berlin'?");
	expect_failure("Berlin", "unknown time zone 'Berlin': did you mean 'Europe/Berlin'?");
	expect_failure("europe/berlin", "unknown time zone 'europe/berlin': did you mean 'Europe/Berlin'?");
#define WRITE "': write a name such as Europe/Berlin, or an offset such as +02:00"
	expect_failure("CEST", "unknown time zone 'CEST" WRITE);
	expect_failure("", "unknown time zone '" WRITE);
	expect_failure("../../../etc/passwd", "unknown time zone '../../../etc/passwd" WRITE);
	expect_failure("Europe/../../zoneinfo/UTC", "unknown time zone 'Europe/../../zoneinfo/UTC" WRITE);
	expect_failure("/etc/localtime", "unknown time zone '/etc/localtime" WRITE);
	expect_failure("+24:00", "unknown time zone '+24:00" WRITE);
	expect_failure("+02:60", "unknown time zone '+02:60" WRITE);
	expect_failure("+2", "unknown time zone '+2" WRITE);
	struct wm_err err = { 0 };
	tap_ok(wm_zone_open(wm_span("UTC\0x", 5), &err) == NULL, "a name with NUL");
	tap_ok(wm_zone_open(wm_span_of("Europe"), &err) == NULL, "a folder");
	tap_ok(wm_zone_open(wm_span_of("tzdata.zi"), &err) == NULL, "a file that is no zone");
}

int
main(void)
{
	/* Nothing here may listen to this. */
	setenv("TZ", "Asia/Tokyo", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	test_recorded();
	test_inverse();
	test_footer();
	test_damaged();
	test_names();
	return tap_done();
}
